/* Tunes from a C program: prints the events, ends the search after a number of trials, prints the result. */
#include <dsat/dsat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  dsat_tuning* tuning;
  int left; /* trials before the end */
} progress;

static void on_event(void* data, const char* event) {
  progress* self = data;
  if (self->left == 0 || strstr(event, "\"event\":\"ended\"") == NULL) return;
  printf("a trial has ended, %d are left\n", --self->left);
  if (self->left == 0) dsat_tuning_stop(self->tuning);
}

int main(int argc, char** argv) {
  if (argc != 3) return fprintf(stderr, "usage: embed_c OUTPUT_DIR TRIALS_BEFORE_STOP\n"), 2;
  char options[1024], *error = NULL;
  snprintf(options, sizeof options,
           "{\"command\": [\"sh\", \"" EXAMPLE_DIR "/train.sh\", \"--deepspeed_config\", \"" EXAMPLE_DIR
           "/ds_config.json\"], \"searcher\": \"asha\", \"metric\": \"throughput\", \"slots\": 1, "
           "\"output-dir\": \"%s\"}",
           argv[1]);
  progress self = {dsat_tuning_create(options, &error), atoi(argv[2])};
  if (self.tuning == NULL) {
    fprintf(stderr, "%s\n", error);
    dsat_text_free(error);
    return 2;
  }
  int status = dsat_tuning_run(self.tuning, on_event, &self);
  printf("%s\n", dsat_tuning_result(self.tuning));
  dsat_tuning_destroy(self.tuning);
  return status;
}
