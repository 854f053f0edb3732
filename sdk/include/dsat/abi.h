/* dsat plugin ABI, version 1.
 *
 * Purpose: the one boundary between dsat-host and a searcher or profiler that lives in a shared library. It compiles
 * alone as C11 and as C++17 and includes nothing but <stdint.h> and <stddef.h>. The comments here are the
 * specification; `dsat/searcher.h` is a thin C++ layer over it that adds no meaning of its own.
 *
 * Calling. Every function carries a tag:
 *   [load]               before any instance exists; fast; starts no thread, touches no host.
 *   [control]            on the host's control thread, never concurrent with another [control] call on the instance.
 *   [control & started]  the same, between start/restore and destroy.
 *   [any-thread]         from any thread, concurrently with everything else.
 *
 * Ownership. Every pointer is borrowed for the call; a callee that needs the bytes later copies them. Nothing is
 * freed across the boundary. State leaves through a sink.
 *
 * Growth. A struct with a struct_size only grows at its end. A member that version 1.0 does not have says since which
 * minor it is there, and a reader tests DSAT_HAS before it touches such a member: the other side may have been compiled
 * with an earlier header. dsat_str, dsat_metric, dsat_sink and dsat_plugin_entry never grow. No struct has padding, at
 * its end neither (asserted at the end of this header), so that sizes are exact. There is no bool, long, enum or
 * bit-field: their sizes differ between compilers.
 *
 * Errors. A failing call first sets a message with host->set_error; a failure without one is reported as the plugin's
 * defect. No exception crosses: every function pointer is noexcept in C++.
 *
 * Determinism. A strategy takes its randomness from dsat_study.seed and reads no clock, environment variable or random
 * device: the same events give the same ops. The host relies on it when it resumes a study by replaying its journal.
 *
 * Remoting. A plugin that does not come with dsat runs in a process of its own behind this same header. Only
 * create_trial waits for the host's answer; every other op is sent with the answer to its event. Such a process is
 * replaced when it is lost, and its strategy is brought back by restore or by the events: see Determinism.
 *
 * Limits. The host refuses a NULL argument, JSON of more than 1 MiB or 100 levels, and more than 10,000 ops or 64 MiB
 * in one event. It cuts lines at 4 KiB and drops log lines beyond 10,000 in one call.
 */
#ifndef DSAT_ABI_H_
#define DSAT_ABI_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
#define DSAT_NOEXCEPT noexcept
extern "C" {
#else
#define DSAT_NOEXCEPT
#endif

/* A plugin loads when its major equals the host's. A minor adds members and extensions and breaks nothing. */
#define DSAT_ABI_MAJOR 1u
#define DSAT_ABI_MINOR 0u

#define DSAT_EXPORT __attribute__((visibility("default")))

/* Does the struct that `ptr` points to, as its maker compiled it, have `member`? */
#define DSAT_HAS(ptr, type, member) ((ptr)->struct_size >= offsetof(type, member) + sizeof((ptr)->member))

/* The outcome of a call: absl's codes. A reader takes a value that it does not know for DSAT_INTERNAL. */
typedef int32_t dsat_status;
enum {
  DSAT_OK = 0,
  DSAT_CANCELLED = 1,
  DSAT_INVALID_ARGUMENT = 3,
  DSAT_NOT_FOUND = 5,
  DSAT_ALREADY_EXISTS = 6,
  DSAT_RESOURCE_EXHAUSTED = 8, /* the trial limit is reached: nothing was queued, going on is fine */
  DSAT_FAILED_PRECONDITION = 9,
  DSAT_UNIMPLEMENTED = 12,
  DSAT_INTERNAL = 13,
  DSAT_DATA_LOSS = 15
};

/* UTF-8 bytes, not NUL-terminated; {NULL, 0} is empty. */
typedef struct dsat_str {
  const char* data;
  size_t size; /* bytes */
} dsat_str;

/* 0, 1, 2, ... in a study, across the profiler and the searcher. The host gives them out; those that a failed event
 * was given are given out again. */
typedef uint64_t dsat_trial_id;
#define DSAT_NO_TRIAL UINT64_MAX

/* One measured number. NaN and infinities never appear. Names and units are DeepSpeed's: forward, backward, step and
 * latency in microseconds, throughput in samples a second over all devices, FLOPS_per_gpu in FLOP/s;
 * latency_spread is the standard deviation of the steps over their median, latency_steps how many steps that are. A
 * trial that only measures the model's size has num_params, trainable_num_params and activation_mem_per_gpu (bytes)
 * instead. */
typedef struct dsat_metric {
  dsat_str name;
  double value;
} dsat_metric;

/* How a trial ended. Only DSAT_TRIAL_OUT_OF_MEMORY says that a configuration is too big; every other failure says
 * nothing about memory. A reader takes a value that it does not know for DSAT_TRIAL_FAILED. */
typedef int32_t dsat_trial_outcome;
enum {
  DSAT_TRIAL_COMPLETED = 0,
  DSAT_TRIAL_OUT_OF_MEMORY = 1,
  DSAT_TRIAL_FAILED = 2,
  DSAT_TRIAL_TIMED_OUT = 3,
  DSAT_TRIAL_INVALID_CONFIG = 4, /* refused before it ran; costs no trial */
  DSAT_TRIAL_STOPPED = 5,
  DSAT_TRIAL_LOST = 6,    /* the machinery lost it: a node died, a file system went away */
  DSAT_TRIAL_DIVERGED = 7 /* it ran, and learns something else than the user's own configuration */
};

/* What a strategy asks for: a trial of the study's base configuration with `overrides_json` merged over it, leaf by
 * leaf. Overrides are objects within objects: the dotted keys by which study_json names its axes are no keys of
 * DeepSpeed's, and the host refuses them. The host keeps train_batch_size = micro batch x accumulation x data-parallel
 * size. */
enum {
  DSAT_TRIAL_REPEAT = 1 /* measure again even if an identical trial has ended */
};
typedef struct dsat_trial_request {
  uint32_t struct_size;
  uint32_t flags;          /* DSAT_TRIAL_* */
  dsat_trial_id parent;    /* the trial that this one follows from, or DSAT_NO_TRIAL */
  dsat_str overrides_json; /* {"train_micro_batch_size_per_gpu": 12, "zero_optimization": {"stage": 2}} */
  dsat_str note;           /* one line: why this trial; shown to people */
} dsat_trial_request;

/* The host as a plugin sees it. Given to the plugin at create, owned by the host, never freed: a call after destroy is
 * refused.
 *
 * An op is queued; all the ops of an event take effect together, in order, when the event returns DSAT_OK, and all
 * are dropped when it fails. Outside an event, and from another thread than the event's, an op gives
 * DSAT_FAILED_PRECONDITION. */
typedef struct dsat_host dsat_host;
struct dsat_host {
  uint32_t struct_size;
  uint32_t abi_minor;
  void* host_data;

  /* [control] Says why the call that is about to fail fails. One line; the last one wins. */
  void (*set_error)(const dsat_host*, dsat_str message) DSAT_NOEXCEPT;

  /* [any-thread] severity: 0 debug, 1 info, 2 warning, 3 error. One line. */
  void (*log)(const dsat_host*, int32_t severity, dsat_str message) DSAT_NOEXCEPT;

  /* [control & started] op. Asks for a trial and gives it an id. DSAT_RESOURCE_EXHAUSTED at the trial limit, and after
   * 1,000 requests in a row that cost no trial; DSAT_INVALID_ARGUMENT when overrides_json is not a JSON object. A
   * configuration that is never valid is not an error here: the trial exits with DSAT_TRIAL_INVALID_CONFIG. */
  dsat_status (*create_trial)(const dsat_host*, const dsat_trial_request*, dsat_trial_id* out_id) DSAT_NOEXCEPT;

  /* [control & started] op. Ends a trial that runs or waits: it exits with DSAT_TRIAL_STOPPED. One that has ended:
   * DSAT_OK, nothing happens. An id that was never given out: DSAT_NOT_FOUND. */
  dsat_status (*stop_trial)(const dsat_host*, dsat_trial_id) DSAT_NOEXCEPT;

  /* [control & started] op, once. Nothing follows but the exits of open trials (which are stopped) and destroy.
   * best: the completed trial that the strategy believes best, weighing noise, or DSAT_NO_TRIAL: the best measured. */
  dsat_status (*finish)(const dsat_host*, dsat_str reason, dsat_trial_id best) DSAT_NOEXCEPT;

  /* [control & started] op of profilers only, before finish; the last one wins. Schema: docs/profile.md. */
  dsat_status (*set_profile)(const dsat_host*, dsat_str profile_json) DSAT_NOEXCEPT;

  /* [any-thread] An interface that this header does not name, or NULL when the host does not offer it. */
  const void* (*get_extension)(const dsat_host*, const char* id)DSAT_NOEXCEPT;
};

/* All that a strategy may know of its study. study_json is an object, described in docs/study.md. */
typedef struct dsat_study {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t seed;
  dsat_str study_json;
} dsat_study;

/* A trial's measurements: exactly once for each completed trial, before its exit. */
typedef struct dsat_result {
  uint32_t struct_size;
  uint32_t metric_count;
  dsat_trial_id trial;
  uint64_t step; /* the last profiled step */
  const dsat_metric* metrics;
} dsat_result;

/* A trial's end: exactly once for each id of an accepted event. */
typedef struct dsat_exit {
  uint32_t struct_size;
  dsat_trial_outcome outcome;
  dsat_trial_id trial;
  uint64_t peak_bytes; /* device memory, worst rank; 0 = unknown */
  int32_t exit_code;   /* of the command; -1 when a signal ended it or nothing ran */
  int32_t term_signal; /* 0 = none */
  uint32_t attempt;    /* 1 = the first start; 1, too, of a trial that never started */
  uint32_t reserved;
  dsat_str reason; /* one line, for people */
  /* For a trial out of memory: what it had allocated and what it wanted then, on the rank where that is most; its peak
   * would have been larger. 0 = unknown. */
  uint64_t peak_above_bytes;
  uint64_t allocator_retries; /* how often the allocator gave its cache back; 0 = never, or unknown */
} dsat_exit;

/* Where a strategy writes its state. [control], during save only. */
typedef struct dsat_sink dsat_sink;
struct dsat_sink {
  void* ctx;
  dsat_status (*write)(const dsat_sink*, const void* data, size_t size) DSAT_NOEXCEPT;
};

/* One searcher or profiler at work; made by create, owned by the plugin, ended by destroy. All [control].
 *
 * Life: create, then exactly one of start and restore, then any number of events, then destroy. save may come between
 * two events. After a call that failed nothing follows but destroy; a failed save alone changes nothing. */
typedef struct dsat_strategy dsat_strategy;
struct dsat_strategy {
  uint32_t struct_size;
  uint32_t reserved;
  void* plugin_data;

  /* An event: ops are legal in it. */
  dsat_status (*start)(dsat_strategy*, const dsat_study*) DSAT_NOEXCEPT;

  /* Takes up a state that save wrote, of the same descriptor id and state_version. No ops. NULL together with save:
   * the host replays every event instead. */
  dsat_status (*restore)(dsat_strategy*, const dsat_study*, dsat_str state) DSAT_NOEXCEPT;

  /* Events. A strategy that returns from one with no open trial, no new one and no finish has ended its study. */
  dsat_status (*on_result)(dsat_strategy*, const dsat_result*) DSAT_NOEXCEPT;
  dsat_status (*on_trial_exited)(dsat_strategy*, const dsat_exit*) DSAT_NOEXCEPT;

  /* Writes all that restore needs: after restore the same events must give the same ops. */
  dsat_status (*save)(dsat_strategy*, const dsat_sink*) DSAT_NOEXCEPT;

  void (*destroy)(dsat_strategy*) DSAT_NOEXCEPT;
};

/* What a plugin tells about a strategy. Static data; strings NUL-terminated.
 * options_json: an array of {name, type: int|number|bool|string|choice, default, min, max, choices, help}; names in
 * kebab-case. The host makes command-line options of them and checks what is given.
 * study_json: an object, what a searcher wants of its study where the user gives no option, or NULL: nothing. Members
 * zero_stages (an array of 0 to 3) and profile_trials (at least 1); others are refused. For a profiler it is NULL. */
typedef struct dsat_descriptor {
  uint32_t struct_size;
  uint32_t state_version; /* raised when the bytes that save writes change their meaning */
  const char* id;         /* "dsat.asha": unique, never changes */
  const char* name;       /* "asha" */
  const char* version;    /* "1.0.0" */
  const char* summary;    /* one line */
  const char* options_json;
  const char* study_json;
} dsat_descriptor;

#define DSAT_SEARCHER_FACTORY "dsat.searcher-factory/1"
#define DSAT_PROFILER_FACTORY "dsat.profiler-factory/1"

/* Makes strategies. Static data. */
typedef struct dsat_factory {
  uint32_t struct_size;
  uint32_t count; /* descriptors, at least 1 */

  /* [load] index < count. */
  const dsat_descriptor* (*descriptor)(uint32_t index)DSAT_NOEXCEPT;

  /* [control] No host op, but set_error and log. options_json: an object with a value for every option. On failure
   * *out is left alone and there is nothing to destroy. */
  dsat_status (*create)(const char* id, const dsat_host*, dsat_str options_json, dsat_strategy** out) DSAT_NOEXCEPT;
} dsat_factory;

/* The only exported symbol: constant data, so that magic and version are read before any plugin function is called. */
#define DSAT_MAGIC 0x54415344u /* "DSAT", little-endian */
typedef struct dsat_plugin_entry {
  uint32_t magic;
  uint32_t struct_size;
  uint32_t abi_major;
  uint32_t abi_minor;
  /* [load] DSAT_SEARCHER_FACTORY or DSAT_PROFILER_FACTORY to a const dsat_factory*; NULL: unknown id. */
  const void* (*get_factory)(const char* factory_id)DSAT_NOEXCEPT;
} dsat_plugin_entry;
extern DSAT_EXPORT const dsat_plugin_entry dsat_plugin_entry_v1;

/* The layout of 64-bit machines: a compiler that sees another one must not build plugins. */
#if UINTPTR_MAX == UINT64_MAX
#if defined(__cplusplus)
#define DSAT_ASSERT(condition) static_assert(condition, #condition)
#define DSAT_SIZE_OF(type, member) sizeof(type::member)
#else
#define DSAT_ASSERT(condition) _Static_assert(condition, #condition)
#define DSAT_SIZE_OF(type, member) sizeof(((const type*)0)->member)
#endif
#define DSAT_ENDS(type, last, size)                                             \
  DSAT_ASSERT(offsetof(type, last) + DSAT_SIZE_OF(type, last) == sizeof(type)); \
  DSAT_ASSERT(sizeof(type) == (size))
DSAT_ENDS(dsat_str, size, 16);
DSAT_ENDS(dsat_metric, value, 24);
DSAT_ENDS(dsat_trial_request, note, 48);
DSAT_ENDS(dsat_host, get_extension, 72);
DSAT_ENDS(dsat_study, study_json, 32);
DSAT_ENDS(dsat_result, metrics, 32);
DSAT_ENDS(dsat_exit, allocator_retries, 72);
DSAT_ENDS(dsat_sink, write, 16);
DSAT_ENDS(dsat_strategy, destroy, 64);
DSAT_ENDS(dsat_descriptor, study_json, 56);
DSAT_ENDS(dsat_factory, create, 24);
DSAT_ENDS(dsat_plugin_entry, get_factory, 24);
#undef DSAT_ENDS
#undef DSAT_SIZE_OF
#undef DSAT_ASSERT
#endif

#if defined(__cplusplus)
}
#endif
#endif /* DSAT_ABI_H_ */
