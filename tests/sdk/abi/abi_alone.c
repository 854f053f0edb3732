/* dsat/abi.h compiles alone as C11; the sizes that a C compiler sees are handed to the test of the layout. */
#include "dsat/abi.h"

size_t dsat_c_size(int index);
size_t dsat_c_size(int index) {
  static const size_t sizes[] = {sizeof(dsat_str),        sizeof(dsat_metric),  sizeof(dsat_trial_request),
                                 sizeof(dsat_host),       sizeof(dsat_study),   sizeof(dsat_result),
                                 sizeof(dsat_exit),       sizeof(dsat_sink),    sizeof(dsat_strategy),
                                 sizeof(dsat_descriptor), sizeof(dsat_factory), sizeof(dsat_plugin_entry)};
  return sizes[index];
}
