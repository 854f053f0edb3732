// The same model as in ../trial_api as a bare loop on the engine: a program that reports, saves and stops by itself.
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "../trial_api/images.h"
#include "dsat/trainer/context.h"
#include "dsat/trainer/engine.h"

namespace trainer = dsat::trainer;

namespace {

volatile std::sig_atomic_t stopped = 0;

// The rest of the command line: EXPERIMENT STEPS [CHECKPOINTS].
struct Arguments {
  explicit Arguments(const std::vector<std::string>& given) {
    if (given.size() < 2 || given.size() > 3) throw dsat::Error("expected EXPERIMENT STEPS [CHECKPOINTS]");
    experiment = given[0];
    steps = std::stoll(given[1]);
    if (given.size() == 3) checkpoints = given[2];
  }
  std::string experiment, checkpoints;
  int64_t steps = 0;
};

double mean_over_ranks(trainer::World& world, double value) {
  return trainer::sum_over_ranks(world.comm(), {value})[0] / world.size();
}

// A signal reaches ranks at different moments: all of them stop after the same step.
bool stop_agreed(trainer::World& world) { return trainer::max_over_ranks(world.comm(), {stopped ? 1.0 : 0.0})[0] > 0; }

void train(trainer::World& world) {
  const Arguments arguments(world.arguments());
  std::signal(SIGTERM, [](int) { stopped = 1; });
  const auto context = trainer::TrialContext::from_config(world, arguments.experiment);
  const dsat::Json data = context->get_data_config();
  torch::manual_seed(world.seed());
  const auto engine = trainer::initialize(std::make_shared<images::NetImpl>(context->get_hparam<int64_t>("width")),
                                          world, context->get_deepspeed_config());
  trainer::DataLoader loader(std::make_shared<images::RandomImages>(data.value("training_images", int64_t{64}),
                                                                    data.value("image", int64_t{224})),
                             engine->train_micro_batch_size_per_gpu(), /*shuffle=*/true);

  int64_t step = 0;
  if (!arguments.checkpoints.empty() && std::filesystem::exists(arguments.checkpoints + "/latest")) {
    step = engine->load_checkpoint(arguments.checkpoints).at("step").get<int64_t>();
  }
  const int64_t accumulation = engine->gradient_accumulation_steps();
  trainer::BatchIterator batches(loader, {world.rank(), world.size(), world.seed()}, /*repeat=*/true,
                                 step * accumulation);
  bool stop = false;
  for (; step < arguments.steps && !stop; ++step) {
    double loss_sum = 0;
    for (int64_t i = 0; i < accumulation; ++i) {
      const trainer::Tensors batch = context->to_device(batches.next());
      const torch::Tensor loss = images::loss_of(engine->forward(batch[0].to(engine->dtype())), batch[1]);
      engine->backward(loss);
      engine->step();
      loss_sum += loss.item<double>();
    }
    const double loss = mean_over_ranks(world, loss_sum / static_cast<double>(accumulation));
    if (world.rank() == 0) std::printf("training %lld  loss %.6g\n", static_cast<long long>(step + 1), loss);
    stop = stop_agreed(world);
  }
  if (!arguments.checkpoints.empty()) {
    engine->save_checkpoint(arguments.checkpoints, "step" + std::to_string(step), {{"step", step}});
  }
}

}  // namespace

int main(int argc, char** argv) { return trainer::run(argc, argv, train); }
