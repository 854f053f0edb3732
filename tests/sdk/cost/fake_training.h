// A training whose memory is known: what the fit has to find out.
#ifndef DSAT_TESTS_SDK_COST_FAKE_TRAINING_H_
#define DSAT_TESTS_SDK_COST_FAKE_TRAINING_H_

#include "dsat/cost/memory.h"

namespace dsat::cost {

struct FakeTraining {
  double fixed = 40e6;
  double activation = 3e6;
  double device = 400e6;
  double params = 5e6;

  Inputs inputs() const {
    Inputs inputs;
    inputs.size = {params, params, params / 10};
    inputs.activation_bytes_at_micro_batch_1 = 0.7 * activation;  // one forward sees less than backward needs
    inputs.device_memory_bytes = device;
    return inputs;
  }

  Setup setup(int stage, int64_t micro_batch) const {
    Setup setup;
    setup.stage = stage;
    setup.data_parallel_size = 2;
    setup.reduce_bucket_elements = 1e6;
    setup.prefetch_bucket_elements = 1e5;
    setup.micro_batch = micro_batch;
    return setup;
  }

  double peak(const Setup& setup) const {
    return model_state_bytes(inputs().size, setup) + buffer_bytes(inputs().size, setup) + fixed +
           activation * static_cast<double>(setup.micro_batch);
  }

  Observation trial(int stage, int64_t micro_batch) const {
    const Setup asked = setup(stage, micro_batch);
    if (peak(asked) > device) return {asked, true, std::nullopt};
    return {asked, false, peak(asked)};
  }

  int64_t max_micro_batch(int stage) const {
    int64_t micro_batch = 0;
    while (peak(setup(stage, micro_batch + 1)) <= device) ++micro_batch;
    return micro_batch;
  }
};

}  // namespace dsat::cost

#endif  // DSAT_TESTS_SDK_COST_FAKE_TRAINING_H_
