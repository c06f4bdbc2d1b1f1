/* The runtime for programs in C, or in any language that can call C. Link with lattice::runtime, or load
 * liblattice.so, which exports these functions and nothing else (python/lattice/runtime.py does).
 *
 * Every function that returns int returns LATTICE_OK, or LATTICE_ERROR with the reason in
 * lattice_last_error(); after an error nothing has changed and *out is untouched. A model and its sessions
 * may be used by one thread at a time; different models are independent. Sessions keep their model alive, so
 * they may be freed in any order. */
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
typedef struct lattice_tokenizer lattice_tokenizer;

/* Why the last call of this thread failed; valid until this thread's next failure. Empty before the first. */
LATTICE_API const char* lattice_last_error(void);

/* Loads a user-defined memory from a shared library (docs/adding-a-memory.md). Call it before models with
 * that memory are opened. It runs the library's code. */
LATTICE_API int lattice_load_memory(const char* path);

/* Opens a checkpoint directory with its tokenizer. `threads` 0: one per core. */
LATTICE_API int lattice_model_open(const char* directory, int threads, lattice_model** out);
/* NULL is allowed. */
LATTICE_API void lattice_model_free(lattice_model* model);
LATTICE_API int32_t lattice_model_vocabulary(const lattice_model* model);
/* The id that separates documents, at which generation ends; -1 if the tokenizer has none. */
LATTICE_API int32_t lattice_model_end_of_text(const lattice_model* model);

/* Tokenises `bytes` bytes of text: *count is the number of ids, and the first `capacity` of them are written.
 * Call with capacity 0 to learn the size. */
LATTICE_API int lattice_encode(const lattice_model* model, const char* text, size_t bytes, int32_t* tokens,
                               size_t capacity, size_t* count);
/* The bytes of one token, which may be part of a character; *bytes and `capacity` as above. */
LATTICE_API int lattice_decode(const lattice_model* model, int32_t token, char* text, size_t capacity,
                               size_t* bytes);

/* The bytes of many tokens. `at_start`: this is the beginning of the text, so that a space which the
 * tokenizer has added in front of it is left out. */
LATTICE_API int lattice_decode_all(const lattice_model* model, const int32_t* tokens, size_t count,
                                   int at_start, char* text, size_t capacity, size_t* bytes);

/* A tokenizer without a model, of a checkpoint directory or the files of a tokenizer; any number of threads may use it.
 * The functions are those of a model's tokenizer. */
LATTICE_API int lattice_tokenizer_open(const char* path, lattice_tokenizer** out);
/* NULL is allowed. */
LATTICE_API void lattice_tokenizer_free(lattice_tokenizer* tokenizer);
LATTICE_API int32_t lattice_tokenizer_vocabulary(const lattice_tokenizer* tokenizer);
LATTICE_API int32_t lattice_tokenizer_end_of_text(const lattice_tokenizer* tokenizer);
LATTICE_API int lattice_tokenizer_encode(const lattice_tokenizer* tokenizer, const char* text, size_t bytes,
                                         int32_t* tokens, size_t capacity, size_t* count);
LATTICE_API int lattice_tokenizer_decode_all(const lattice_tokenizer* tokenizer, const int32_t* tokens,
                                             size_t count, int at_start, char* text, size_t capacity,
                                             size_t* bytes);

/* A new session, which has read nothing, or a copy of another. */
LATTICE_API int lattice_session_new(lattice_model* model, lattice_session** out);
LATTICE_API int lattice_session_fork(const lattice_session* session, lattice_session** out);
/* NULL is allowed. */
LATTICE_API void lattice_session_free(lattice_session* session);
LATTICE_API int64_t lattice_session_position(const lattice_session* session);

/* Appends tokens, at least one. */
LATTICE_API int lattice_session_append(lattice_session* session, const int32_t* tokens, size_t count);
/* The logits, [vocabulary], after the last token; NULL before the first token and after lattice_session_load.
 * Valid until the session's next append, load or free. */
LATTICE_API const float* lattice_session_logits(const lattice_session* session);

typedef struct lattice_sampling {
  double temperature; /* 0: greedy */
  int64_t top_k;      /* only the k most likely tokens; 0: all */
  double top_p;       /* only the most likely tokens that together have this probability; 1: all */
  double min_p;       /* only tokens with this fraction of the most likely one's probability */
  uint64_t seed;
  /* Makes the last 64 tokens, of those read since the session was made or loaded, less likely. 0, 1: off. */
  double repetition_penalty;
} lattice_sampling;

/* Samples the next token without appending it. The same logits, options and position give the same token. */
LATTICE_API int lattice_session_sample(const lattice_session* session, const lattice_sampling* options,
                                       int32_t* token);
/* Samples and appends up to `capacity` tokens, stopping before the end of text. *count is the number of
 * tokens that were appended, also after an error. One call or several give the same text. */
LATTICE_API int lattice_session_generate(lattice_session* session, const lattice_sampling* options,
                                         int32_t* tokens, size_t capacity, size_t* count);

/* A snapshot of the session, including its logits, which any session of the model can be rewound to. */
LATTICE_API int lattice_session_snapshot(const lattice_session* session, lattice_snapshot** out);
LATTICE_API int lattice_session_rewind(lattice_session* session, const lattice_snapshot* snapshot);
/* NULL is allowed. */
LATTICE_API void lattice_snapshot_free(lattice_snapshot* snapshot);
LATTICE_API int64_t lattice_snapshot_position(const lattice_snapshot* snapshot);

/* Saves the state to a file, which only the same model can load; load replaces the session's state. */
LATTICE_API int lattice_session_save(const lattice_session* session, const char* path);
LATTICE_API int lattice_session_load(lattice_session* session, const char* path);

#ifdef __cplusplus
}
#endif

#endif /* LATTICE_RUNTIME_LATTICE_H_ */
