/* A training command for tests of what survives a crash: it follows DeepSpeed's autotuning protocol, trains nothing,
 * and writes in a ledger when it starts and when its result is complete ("end") or torn.
 *
 *   ledger_trial --deepspeed_config FILE --ledger FILE [--ms N] [--chaos PERCENT] [--child]
 *
 * Its metrics, and with --chaos the way it misbehaves, are functions of its configuration: equal configurations act
 * alike. The misbehaving ones crash, hang or leave a torn result, a third each. --child leaves a process in a
 * session of its own behind. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char config[1 << 16];

static const char* after_key(const char* key) {
  const char* at = strstr(config, key);
  return at == NULL ? NULL : at + strlen(key);
}

static int string_value(const char* key, char* out, size_t size) {
  const char* at = after_key(key);
  if (at == NULL || (at = strchr(at, '"')) == NULL) return 0;
  const char* end = strchr(at + 1, '"');
  if (end == NULL || (size_t)(end - at) > size) return 0;
  memcpy(out, at + 1, (size_t)(end - at - 1));
  out[end - at - 1] = '\0';
  return 1;
}

static double number_value(const char* key, double otherwise) {
  const char* at = after_key(key);
  return at == NULL ? otherwise : strtod(strchr(at, ':') + 1, NULL);
}

/* The same for equal configurations, whatever their folder: the protocol's section, which comes last, is left out. */
static unsigned long hash_of_config(void) {
  const char* end = strstr(config, "\"autotuning\"");
  unsigned long hash = 1469598103934665603UL;
  for (const char* c = config; *c != '\0' && c != end; ++c) hash = (hash ^ (unsigned char)*c) * 1099511628211UL;
  return hash ^ (hash >> 29);
}

static void note(const char* ledger, const char* what) {
  const char* id = getenv("DSAT_TRIAL_ID");
  FILE* out = ledger == NULL ? NULL : fopen(ledger, "a");
  if (out == NULL) return;
  fprintf(out, "%s %s %d\n", what, id == NULL ? "-" : id, (int)getpid());
  fclose(out); /* one write of an appending file: lines of several trials do not mix */
}

static void leave_child(const char* ledger) {
  if (fork() != 0) return;
  setsid();
  if (fork() != 0) _exit(0);
  note(ledger, "child");
  close(0), close(1), close(2);
  for (;;) pause();
}

static void sleep_ms(long ms) {
  const struct timespec time = {ms / 1000, (ms % 1000) * 1000000};
  nanosleep(&time, NULL);
}

static int write_result(const char* path, int model_info, int torn) {
  char temporary[4200];
  snprintf(temporary, sizeof temporary, "%s.part", path);
  FILE* out = fopen(torn ? path : temporary, "w");
  if (out == NULL) return 2;
  const double micro_batch = number_value("\"train_micro_batch_size_per_gpu\"", 1);
  const double batch = number_value("\"train_batch_size\"", micro_batch);
  const double latency_us = 1000 + 10 * micro_batch + (double)(hash_of_config() % 200);
  if (model_info) {
    fprintf(out, "{\"num_params\": 1000000, \"trainable_num_params\": 1000000, \"activation_mem_per_gpu\": 1000}\n");
  } else if (torn) {
    fprintf(out, "{\"latency\": %.3f, \"through", latency_us);
  } else {
    fprintf(out,
            "{\"latency\": %.3f, \"throughput\": %.6f, \"FLOPS_per_gpu\": %.3f, \"forward\": 1.0, \"backward\": 2.0, "
            "\"step\": 3.0, \"peak_memory\": %.0f}\n",
            latency_us, batch * 1e6 / latency_us, batch * 1e12 / latency_us, 1e6 * (1 + micro_batch));
  }
  return fclose(out) != 0 || (!torn && rename(temporary, path) != 0) ? 2 : 0;
}

int main(int argc, char** argv) {
  const char *ledger = NULL, *file = NULL;
  long ms = 0, chaos = 0;
  int child = 0;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--child") == 0) child = 1;
    if (i + 1 == argc) break;
    if (strcmp(argv[i], "--deepspeed_config") == 0) file = argv[i + 1];
    if (strcmp(argv[i], "--ledger") == 0) ledger = argv[i + 1];
    if (strcmp(argv[i], "--ms") == 0) ms = atol(argv[i + 1]);
    if (strcmp(argv[i], "--chaos") == 0) chaos = atol(argv[i + 1]);
  }
  FILE* in = file == NULL ? NULL : fopen(file, "r");
  if (in == NULL || fread(config, 1, sizeof config - 1, in) == 0) return 2;
  fclose(in);
  note(ledger, "start");
  if (child) leave_child(ledger);
  char path[4096];
  const int model_info = string_value("\"model_info_path\"", path, sizeof path);
  if (!model_info && !string_value("\"metric_path\"", path, sizeof path)) return 2;
  sleep_ms(ms);
  const unsigned long draw = hash_of_config() / 7;
  const int misbehaves = !model_info && draw % 100 < (unsigned long)chaos;
  if (misbehaves && draw / 100 % 3 == 0) raise(SIGSEGV);
  if (misbehaves && draw / 100 % 3 == 1) {
    for (;;) pause();
  }
  const int status = write_result(path, model_info, misbehaves);
  if (status == 0) note(ledger, misbehaves ? "torn" : "end");
  return status;
}
