/* The runtime for programs in C, or in any language that can call C. Link with lattice::runtime.
 *
 * Every function that returns int gives LATTICE_OK, or LATTICE_ERROR with the reason in lattice_last_error();
 * then nothing has changed and *out is untouched. A model and its sessions are used by one thread at a time;
 * different models are independent. Sessions keep their model alive, so the order of freeing is free. */
#ifndef LATTICE_RUNTIME_LATTICE_H_
#define LATTICE_RUNTIME_LATTICE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { LATTICE_OK = 0, LATTICE_ERROR = 1 };

typedef struct lattice_model lattice_model;
typedef struct lattice_session lattice_session;

/* Why the last call of this thread failed; valid until this thread's next failure. Empty before the first. */
const char* lattice_last_error(void);

/* A checkpoint directory with its tokenizer. `threads` 0: one per core. */
int lattice_model_open(const char* directory, int threads, lattice_model** out);
/* NULL is allowed. */
void lattice_model_free(lattice_model* model);
int32_t lattice_model_vocabulary(const lattice_model* model);

/* The ids of `bytes` bytes of text: *count is how many there are, and the first `capacity` of them are
 * written. Call with capacity 0 to learn the size. */
int lattice_encode(const lattice_model* model, const char* text, size_t bytes, int32_t* tokens,
                   size_t capacity, size_t* count);
/* The bytes of one token, which may be a part of a character; *bytes and `capacity` as above. */
int lattice_decode(const lattice_model* model, int32_t token, char* text, size_t capacity, size_t* bytes);

/* A sequence that has read nothing, or what another has read. */
int lattice_session_new(lattice_model* model, lattice_session** out);
int lattice_session_fork(const lattice_session* session, lattice_session** out);
/* NULL is allowed. */
void lattice_session_free(lattice_session* session);
int64_t lattice_session_position(const lattice_session* session);

/* Reads tokens, at least one. */
int lattice_session_append(lattice_session* session, const int32_t* tokens, size_t count);
/* [vocabulary] behind the last token read; NULL before the first, and after lattice_session_load. Valid until
 * the session's next append, load or free. */
const float* lattice_session_logits(const lattice_session* session);

typedef struct lattice_sampling {
  double temperature; /* 0: always the most likely */
  int64_t top_k;      /* only the k most likely; 0: all */
  double top_p;       /* only the most likely that together have this probability; 1: all */
  double min_p;       /* only those with this share of the most likely one's probability */
  uint64_t seed;
} lattice_sampling;

/* Chooses the next token; it is not read yet. The same logits, options and position give the same token. */
int lattice_session_sample(const lattice_session* session, const lattice_sampling* options, int32_t* token);

/* The state as a file, bound to the model; load replaces what the session has read. */
int lattice_session_save(const lattice_session* session, const char* path);
int lattice_session_load(lattice_session* session, const char* path);

#ifdef __cplusplus
}
#endif

#endif /* LATTICE_RUNTIME_LATTICE_H_ */
