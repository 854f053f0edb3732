/* dsat as a library: a study in this process.
 *
 * Purpose: the small C interface of libdsat.so. Options, events and results are JSON, the same as dsat-host's on its
 * command line, from --events and from --json, so that one description holds for all (docs/embedding.md).
 *
 * Threading: a tuning belongs to one thread at a time; dsat_tuning_stop may be called from any thread and from a
 * signal handler. Several tunings of one process run side by side. Signals are left alone; SIGCHLD must not be ignored.
 * Ownership: a handle is ended by dsat_tuning_destroy. Texts that a function returns as const belong to the handle;
 * a text in *error is freed with dsat_text_free.
 * Errors: one line: what is wrong, where, what to do. No C++ exception leaves the library, and it never prints. */
#ifndef DSAT_DSAT_H_
#define DSAT_DSAT_H_

#if defined(__cplusplus)
extern "C" {
#endif

/* Raised when a function is added. Functions never change their meaning. */
#define DSAT_API_VERSION 1

/* How a tuning ended, as the exit status of dsat-host. */
enum {
  DSAT_TUNING_BEST_FOUND = 0,
  DSAT_TUNING_NO_BEST = 1,
  DSAT_TUNING_WRONG_USE = 2, /* a NULL handle, or run was called before */
  DSAT_TUNING_INTERRUPTED = 3,
  DSAT_TUNING_FAILED = 4
};

typedef struct dsat_tuning dsat_tuning;

/* Called on a thread of the library, one call at a time, with one JSON object: {"event": "ended", "trial": {...}}. The
 * text is borrowed for the call. */
typedef void (*dsat_event_function)(void* data, const char* event_json);

unsigned dsat_api_version(void);  /* of the library: at least that of the header */
const char* dsat_version(void);   /* "1.0.0" */

/* Checks all that can be checked without a trial; after an error nothing has been run or written.
 * options_json: {"command": ["deepspeed", "train.py", ...], "max-trials": 32, "zero-stages": [1, 2], ...}: the long
 * options of dsat-host; a switch takes true, null and false are left out. NULL: an error, with its text in *error
 * unless `error` is NULL. */
dsat_tuning* dsat_tuning_create(const char* options_json, char** error);

/* Goes on with the study in `dir`; options are those of dsat-host resume, NULL: none. */
dsat_tuning* dsat_tuning_resume(const char* dir, const char* options_json, char** error);

/* Runs the study to its end and returns DSAT_TUNING_...; once. on_event may be NULL. */
int dsat_tuning_run(dsat_tuning* tuning, dsat_event_function on_event, void* data);

/* The first call ends the trials and saves; the second does so at once. */
void dsat_tuning_stop(dsat_tuning* tuning);

const char* dsat_tuning_dir(const dsat_tuning* tuning);    /* the run directory */
const char* dsat_tuning_result(const dsat_tuning* tuning); /* the object of --json; NULL before the run has ended */

/* Frees the run directory for others. NULL is allowed. */
void dsat_tuning_destroy(dsat_tuning* tuning);

void dsat_text_free(char* text);

#if defined(__cplusplus)
}
#endif
#endif /* DSAT_DSAT_H_ */
