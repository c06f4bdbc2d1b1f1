/* The runtime for programs in C, or in any language that can call C. Link with lattice::runtime, or load
 * liblattice.so, which exports these functions and nothing else (python/lattice/runtime.py does).
 *
 * Every function that returns int gives LATTICE_OK, or LATTICE_ERROR with the reason in lattice_last_error();
 * then nothing has changed and *out is untouched. A model and its sessions are used by one thread at a time;
 * different models are independent. Sessions keep their model alive, so the order of freeing is free. */
#ifndef LATTICE_RUNTIME_LATTICE_H_
#define LATTICE_RUNTIME_LATTICE_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define LATTICE_API __attribute__((visibility("default")))
#else
#define LATTICE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum { LATTICE_OK = 0, LATTICE_ERROR = 1 };

typedef struct lattice_model lattice_model;
typedef struct lattice_session lattice_session;
typedef struct lattice_snapshot lattice_snapshot;

/* Why the last call of this thread failed; valid until this thread's next failure. Empty before the first. */
LATTICE_API const char* lattice_last_error(void);

/* Makes a memory of one's own known (docs/adding-a-memory.md), before models that have it are opened. This runs
 * the library's code. */
LATTICE_API int lattice_load_memory(const char* path);

/* A checkpoint directory with its tokenizer. `threads` 0: one per core. */
LATTICE_API int lattice_model_open(const char* directory, int threads, lattice_model** out);
/* NULL is allowed. */
LATTICE_API void lattice_model_free(lattice_model* model);
LATTICE_API int32_t lattice_model_vocabulary(const lattice_model* model);
/* The id that stands between documents, at which generation ends; -1 where the tokenizer has none. */
LATTICE_API int32_t lattice_model_end_of_text(const lattice_model* model);

/* The ids of `bytes` bytes of text: *count is how many there are, and the first `capacity` of them are
 * written. Call with capacity 0 to learn the size. */
LATTICE_API int lattice_encode(const lattice_model* model, const char* text, size_t bytes, int32_t* tokens,
                               size_t capacity, size_t* count);
/* The bytes of one token, which may be a part of a character; *bytes and `capacity` as above. */
LATTICE_API int lattice_decode(const lattice_model* model, int32_t token, char* text, size_t capacity,
                               size_t* bytes);

/* The bytes of many tokens. `at_start`: no text has come before, so that a space which the tokenizer put in
 * front of it is left out. */
LATTICE_API int lattice_decode_all(const lattice_model* model, const int32_t* tokens, size_t count,
                                   int at_start, char* text, size_t capacity, size_t* bytes);

/* A sequence that has read nothing, or what another has read. */
LATTICE_API int lattice_session_new(lattice_model* model, lattice_session** out);
LATTICE_API int lattice_session_fork(const lattice_session* session, lattice_session** out);
/* NULL is allowed. */
LATTICE_API void lattice_session_free(lattice_session* session);
LATTICE_API int64_t lattice_session_position(const lattice_session* session);

/* Reads tokens, at least one. */
LATTICE_API int lattice_session_append(lattice_session* session, const int32_t* tokens, size_t count);
/* [vocabulary] behind the last token read; NULL before the first, and after lattice_session_load. Valid until
 * the session's next append, load or free. */
LATTICE_API const float* lattice_session_logits(const lattice_session* session);

typedef struct lattice_sampling {
  double temperature; /* 0: always the most likely */
  int64_t top_k;      /* only the k most likely; 0: all */
  double top_p;       /* only the most likely that together have this probability; 1: all */
  double min_p;       /* only those with this share of the most likely one's probability */
  uint64_t seed;
  double
      repetition_penalty; /* makes the last 64 tokens read since opening or load less likely; 0 or 1: off */
} lattice_sampling;

/* Chooses the next token; it is not read yet. The same logits, options and position give the same token. */
LATTICE_API int lattice_session_sample(const lattice_session* session, const lattice_sampling* options,
                                       int32_t* token);
/* Chooses and reads up to `capacity` tokens, ending before the end of text. *count is how many, after an error
 * too: those have been read. The same text in one call or many. */
LATTICE_API int lattice_session_generate(lattice_session* session, const lattice_sampling* options,
                                         int32_t* tokens, size_t capacity, size_t* count);

/* The session as it is now, logits included, to go back to with any session of the model. */
LATTICE_API int lattice_session_snapshot(const lattice_session* session, lattice_snapshot** out);
LATTICE_API int lattice_session_rewind(lattice_session* session, const lattice_snapshot* snapshot);
/* NULL is allowed. */
LATTICE_API void lattice_snapshot_free(lattice_snapshot* snapshot);
LATTICE_API int64_t lattice_snapshot_position(const lattice_snapshot* snapshot);

/* The state as a file, bound to the model; load replaces what the session has read. */
LATTICE_API int lattice_session_save(const lattice_session* session, const char* path);
LATTICE_API int lattice_session_load(lattice_session* session, const char* path);

#ifdef __cplusplus
}
#endif

#endif /* LATTICE_RUNTIME_LATTICE_H_ */
