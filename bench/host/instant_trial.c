/* A training command that takes no time: reads its configuration, writes the result file that it asks for, ends.
 * What is left of a trial's wall time is the host's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies the string value of "key" out of a JSON text that the host wrote; 0 when it is not there. */
static int string_value(const char* text, const char* key, char* out, size_t size) {
  const char* at = strstr(text, key);
  if (at == NULL) return 0;
  at = strchr(at + strlen(key) + 1, '"');
  if (at == NULL) return 0;
  const char* end = strchr(at + 1, '"');
  if (end == NULL || (size_t)(end - at) > size) return 0;
  memcpy(out, at + 1, (size_t)(end - at - 1));
  out[end - at - 1] = '\0';
  return 1;
}

static double number_value(const char* text, const char* key) {
  const char* at = strstr(text, key);
  return at == NULL ? 1 : strtod(strchr(at + strlen(key), ':') + 1, NULL);
}

int main(int argc, char** argv) {
  static char config[1 << 16];
  char path[4096];
  if (argc < 3) return 2;
  FILE* in = fopen(argv[2], "r");
  if (in == NULL || fread(config, 1, sizeof config - 1, in) == 0) return 2;
  fclose(in);
  const int model_info = string_value(config, "\"model_info_path\"", path, sizeof path);
  if (!model_info && !string_value(config, "\"metric_path\"", path, sizeof path)) return 2;
  FILE* out = fopen(path, "w");
  if (out == NULL) return 2;
  const double micro_batch = number_value(config, "\"train_micro_batch_size_per_gpu\"");
  const double latency_us = 1000 + 10 * micro_batch;
  if (model_info) {
    fprintf(out, "{\"num_params\": 1000000, \"trainable_num_params\": 1000000, \"activation_mem_per_gpu\": 1000}\n");
  } else {
    fprintf(
        out,
        "{\"fwd\": %g, \"bwd\": %g, \"step\": 10, \"latency\": %.17g, \"throughput\": %.17g, \"FLOPS_per_gpu\": %.17g, "
        "\"peak_memory\": %.0f}\n",
        latency_us / 3, latency_us * 2 / 3, latency_us, micro_batch * 1e6 / latency_us, micro_batch * 1e9 / latency_us,
        2e7 + 1000 * micro_batch);
  }
  return fclose(out);
}
