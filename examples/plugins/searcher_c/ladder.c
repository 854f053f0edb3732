/* A searcher in C: tries the micro batches 1, 2, 4, 8, ... of your own configuration until one fails. */
#include <dsat/abi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct searcher {
  dsat_strategy strategy; /* the host's view */
  const dsat_host* host;
  uint64_t micro_batch;
  dsat_trial_id last;
} searcher;

static dsat_str str(const char* text) {
  dsat_str s = {text, strlen(text)};
  return s;
}

static dsat_status ask(searcher* self) {
  char overrides[80];
  snprintf(overrides, sizeof overrides, "{\"train_micro_batch_size_per_gpu\": %llu}",
           (unsigned long long)self->micro_batch);
  dsat_trial_request request = {sizeof request, 0, self->last, str(overrides), str("the next rung")};
  dsat_status status = self->host->create_trial(self->host, &request, &self->last);
  if (status != DSAT_RESOURCE_EXHAUSTED) return status;
  return self->host->finish(self->host, str("the trial limit is reached"), DSAT_NO_TRIAL);
}

static dsat_status start(dsat_strategy* strategy, const dsat_study* study) {
  (void)study;
  return ask(strategy->plugin_data);
}

static dsat_status on_result(dsat_strategy* strategy, const dsat_result* result) {
  (void)strategy, (void)result; /* the host itself finds the best trial */
  return DSAT_OK;
}

static dsat_status on_trial_exited(dsat_strategy* strategy, const dsat_exit* exit) {
  searcher* self = strategy->plugin_data;
  if (exit->trial != self->last || exit->outcome == DSAT_TRIAL_STOPPED) return DSAT_OK;
  if (exit->outcome != DSAT_TRIAL_COMPLETED || self->micro_batch > 1u << 20)
    return self->host->finish(self->host, str("the largest micro batch is known"), DSAT_NO_TRIAL);
  self->micro_batch *= 2;
  return ask(self);
}

static void destroy(dsat_strategy* strategy) { free(strategy->plugin_data); }

static const dsat_descriptor descriptor = {
    sizeof(dsat_descriptor), 1,   "example.ladder", "ladder", "1.0.0", "doubles the micro batch until it fails",
    "[]" /* no options */,   NULL /* no wishes */};
static const dsat_descriptor* describe(uint32_t index) { return index == 0 ? &descriptor : NULL; }

static dsat_status create(const char* id, const dsat_host* host, dsat_str options, dsat_strategy** out) {
  (void)id, (void)options;
  searcher* self = calloc(1, sizeof *self);
  if (self == NULL) {
    host->set_error(host, str("out of memory"));
    return DSAT_INTERNAL;
  }
  /* There is no save and no restore: the host replays the study's events instead. */
  dsat_strategy strategy = {sizeof strategy, 0, self, start, NULL, on_result, on_trial_exited, NULL, destroy};
  self->strategy = strategy;
  self->host = host;
  self->micro_batch = 1;
  self->last = DSAT_NO_TRIAL;
  *out = &self->strategy;
  return DSAT_OK;
}

static const dsat_factory factory = {sizeof(dsat_factory), 1, describe, create};
static const void* get_factory(const char* id) { return strcmp(id, DSAT_SEARCHER_FACTORY) == 0 ? &factory : NULL; }
DSAT_EXPORT const dsat_plugin_entry dsat_plugin_entry_v1 = {DSAT_MAGIC, sizeof(dsat_plugin_entry), DSAT_ABI_MAJOR,
                                                            DSAT_ABI_MINOR, get_factory};
