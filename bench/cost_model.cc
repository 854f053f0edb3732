// How well the cost model foretells memory on real training: the table of docs/cost-model.md.
//
//   bench_cost_model [--trainer PATH] [--dir DIR] [MODEL ...]        (about two minutes on two cores)
//
// For each model: one model-information trial and two measured ones, both at a single ZeRO stage. From these alone the
// peaks and the largest micro batch of all four stages are predicted and written down; only then does dsat-trial run at
// the other stages, and the true largest micro batch is found by bisection under --device-memory. A case passes when
// the peaks at the ceiling and at twice the largest fitted micro batch are within 5 %, and the largest micro batch
// within 1. Exit status: 0 when at least 10 in 12 cases pass.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "dsat/config/units.h"
#include "dsat/cost/memory.h"

namespace {

namespace fs = std::filesystem;
using dsat::Json;

constexpr int kRanks = 2;
constexpr double kPeakTolerance = 0.05;
constexpr double kShareToPass = 10.0 / 12;

struct Model {
  const char* name;
  const char* arguments;
  const char* device_memory;
  int fitted_stage;
};

// A different stage is fitted for each.
const Model kModels[] = {
    {"gpt", "--model gpt --layers 4 --hidden 128 --heads 4 --seq 64 --vocab 512", "128MiB", 1},
    {"resnet", "--model resnet --depth 20 --image 32", "96MiB", 2},
    {"mlp", "--model mlp --layers 32 --hidden 128", "12MiB", 0},
};

struct Outcome {
  bool out_of_memory = false;
  double peak_bytes = 0;
  Json file;  // what the trial wrote
};

[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "bench_cost_model: %s\n", message.c_str());
  std::exit(2);
}

std::string read_text(const fs::path& file) {
  std::ifstream stream(file);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

// Starts trials of one model, each in a folder of its own.
class Trainer {
 public:
  Trainer(fs::path program, fs::path dir, const Model& model)
      : program_(std::move(program)), dir_(std::move(dir)), model_(model) {}

  Outcome train(int stage, int64_t micro_batch) { return run(config(stage, micro_batch), "metrics.json"); }

  Outcome model_information() {
    Json config = this->config(model_.fitted_stage, 1);
    config["autotuning"]["model_info"] = {{"profile", true}};
    return run(config, "model_info.json");
  }

  Json config(int stage, int64_t micro_batch) const {
    return {{"train_micro_batch_size_per_gpu", micro_batch},
            {"gradient_accumulation_steps", 1},
            {"optimizer", {{"type", "AdamW"}, {"params", {{"lr", 1e-3}}}}},
            {"zero_optimization",
             {{"stage", stage},
              {"reduce_bucket_size", 200'000},
              {"allgather_bucket_size", 200'000},
              {"stage3_prefetch_bucket_size", 1},
              {"overlap_comm", false}}}};
  }

 private:
  Outcome run(Json config, const char* result_name) {
    const fs::path dir = dir_ / (std::string(model_.name) + "-" + std::to_string(trials_++));
    fs::create_directories(dir);
    const fs::path result = dir / result_name;
    Json& autotuning = config["autotuning"];
    autotuning["enabled"] = true;
    autotuning["start_profile_step"] = 1;
    autotuning["end_profile_step"] = 2;
    autotuning["metric_path"] = autotuning["model_info_path"] = result.string();
    std::ofstream(dir / "ds_config.json") << config.dump(2);
    const std::string command = "'" + program_.string() + "' " + model_.arguments + " --ranks " +
                                std::to_string(kRanks) + " --device-memory " + model_.device_memory +
                                " --deepspeed_config '" + (dir / "ds_config.json").string() + "' > '" +
                                (dir / "output.log").string() + "' 2>&1";
    const int status = std::system(command.c_str());
    return outcome_of(dir, result, status);
  }

  Outcome outcome_of(const fs::path& dir, const fs::path& result, int status) const {
    Outcome outcome;
    if (fs::exists(result)) {
      outcome.file = Json::parse(read_text(result));
      outcome.peak_bytes = outcome.file.value("peak_memory", 0.0);
      return outcome;
    }
    const fs::path log = dir / "output.log";
    if (read_text(log).find("out of memory") == std::string::npos) {
      fail("a trial ended with wait status " + std::to_string(status) + " and no result; read " + log.string());
    }
    outcome.out_of_memory = true;
    return outcome;
  }

  fs::path program_, dir_;
  const Model& model_;
  int trials_ = 0;
};

dsat::cost::Setup setup_of(const Json& config) { return dsat::cost::setup_from_config(config, kRanks); }

dsat::cost::Inputs model_information(Trainer& trainer, const Model& model) {
  dsat::cost::Inputs inputs;
  const Json info = trainer.model_information().file;
  inputs.size.num_params = info.at("num_params").get<double>();
  inputs.size.trainable_num_params = info.at("trainable_num_params").get<double>();
  inputs.size.largest_layer_params = info.value("largest_layer_params", 0.0);
  inputs.activation_bytes_at_micro_batch_1 = info.at("activation_mem_per_gpu").get<double>();
  inputs.device_memory_bytes = static_cast<double>(dsat::config::parse_size(model.device_memory));
  return inputs;
}

// All that is known when the predictions are made: as a profiler would, at micro batch 2 and at a quarter of what is
// then expected to fit.
dsat::cost::MemoryFit fit_two_trials(Trainer& trainer, const Model& model) {
  const dsat::cost::Inputs inputs = model_information(trainer, model);
  std::vector<dsat::cost::Observation> observations;
  int64_t micro_batch = 2;
  for (int trial = 0; trial < 2; ++trial) {
    const dsat::cost::Setup setup = setup_of(trainer.config(model.fitted_stage, micro_batch));
    const Outcome outcome = trainer.train(model.fitted_stage, micro_batch);
    if (outcome.out_of_memory) fail(std::string(model.name) + ": a trial to fit ran out of memory; give it more");
    observations.push_back({setup, false, outcome.peak_bytes});
    const double expected = dsat::cost::max_micro_batch(dsat::cost::fit_memory(inputs, observations), setup).value;
    micro_batch = std::clamp<int64_t>(std::lround(expected) / 4, 4, 256);
  }
  return dsat::cost::fit_memory(inputs, observations);
}

// The largest micro batch that really fits: steps away from `guess` until it lies between two trials, then halves.
int64_t true_ceiling(Trainer& trainer, int stage, int64_t guess, std::map<int64_t, Outcome>& outcomes) {
  const auto fits = [&](int64_t micro_batch) {
    if (micro_batch < 1) return true;
    auto it = outcomes.find(micro_batch);
    if (it == outcomes.end()) it = outcomes.emplace(micro_batch, trainer.train(stage, micro_batch)).first;
    return !it->second.out_of_memory;
  };
  int64_t good = std::max<int64_t>(guess, 1), step = 1;
  while (!fits(good)) {
    good = std::max<int64_t>(0, good - step);
    step *= 2;
  }
  int64_t bad = good + 1;
  for (step = 1; fits(bad); step *= 2) {
    good = bad;
    bad += step;
  }
  while (bad - good > 1) {
    const int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

// What is said of a stage before anything has run there.
struct Prediction {
  int stage = 0;
  dsat::cost::Interval ceiling;
  std::map<int64_t, double> peaks;  // by micro batch
};

Prediction predict(const dsat::cost::MemoryFit& fit, const Trainer& trainer, int stage, int64_t twice) {
  Prediction prediction{stage, dsat::cost::max_micro_batch(fit, setup_of(trainer.config(stage, 1))), {}};
  // Wherever the true ceiling may turn out to lie, its peak is written down now.
  const int64_t end = std::clamp<int64_t>(2 * std::lround(prediction.ceiling.value) + 16, twice, 10'000);
  for (int64_t micro_batch = 1; micro_batch <= end; ++micro_batch) {
    prediction.peaks[micro_batch] = dsat::cost::predict_peak(fit, setup_of(trainer.config(stage, micro_batch))).value;
  }
  return prediction;
}

// One row of the table; true when the case passes.
bool check_stage(Trainer& trainer, const Model& model, const Prediction& prediction, int64_t twice) {
  std::map<int64_t, Outcome> outcomes;
  const int64_t ceiling = true_ceiling(trainer, prediction.stage, std::lround(prediction.ceiling.value), outcomes);
  if (ceiling < twice) {
    fail(std::string(model.name) + ": stage " + std::to_string(prediction.stage) + " holds fewer than " +
         std::to_string(twice) + " samples, too few for this bench; give the model more device memory");
  }
  if (outcomes.count(twice) == 0) outcomes[twice] = trainer.train(prediction.stage, twice);

  std::printf("| %-6s | %d | %d ", model.name, model.fitted_stage, prediction.stage);
  bool passes = std::abs(prediction.ceiling.value - static_cast<double>(ceiling)) <= 1;
  for (const int64_t micro_batch : {twice, ceiling}) {
    const auto predicted = prediction.peaks.find(micro_batch);
    if (predicted == prediction.peaks.end()) fail("the ceiling lies far beyond twice the predicted one");
    const double measured = outcomes[micro_batch].peak_bytes;
    const double error = (predicted->second - measured) / measured;
    passes = passes && std::abs(error) <= kPeakTolerance;
    std::printf("| %lld | %.2f | %.2f | %+.1f %% ", static_cast<long long>(micro_batch), predicted->second / 1e6,
                measured / 1e6, 100 * error);
  }
  std::printf("| %.0f (%.0f to %.0f) | %s |\n", prediction.ceiling.value, prediction.ceiling.low,
              prediction.ceiling.high, passes ? "yes" : "no");
  std::fflush(stdout);
  return passes;
}

int check_model(const fs::path& program, const fs::path& dir, const Model& model) {
  Trainer trainer(program, dir, model);
  const dsat::cost::MemoryFit fit = fit_two_trials(trainer, model);
  const int64_t twice = 2 * fit.largest_measured_micro_batch;
  std::vector<Prediction> predictions;
  for (int stage = 0; stage <= 3; ++stage) {
    predictions.push_back(predict(fit, trainer, stage, twice));
  }
  int passed = 0;
  for (const Prediction& prediction : predictions) passed += check_stage(trainer, model, prediction, twice) ? 1 : 0;
  return passed;
}

struct Arguments {
  fs::path program, dir;
  std::vector<std::string> models;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments{fs::absolute(argv[0]).parent_path() / "dsat-trial",
                      fs::temp_directory_path() / ("dsat-bench-" + std::to_string(getpid())),
                      {}};
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    if (text == "--trainer" && i + 1 < argc) {
      arguments.program = fs::absolute(argv[++i]);
    } else if (text == "--dir" && i + 1 < argc) {
      arguments.dir = fs::absolute(argv[++i]);
    } else if (std::any_of(std::begin(kModels), std::end(kModels), [&](const Model& m) { return text == m.name; })) {
      arguments.models.push_back(text);
    } else {
      fail("'" + text + "' is not known; usage: bench_cost_model [--trainer PATH] [--dir DIR] [gpt|resnet|mlp ...]");
    }
  }
  if (!fs::exists(arguments.program)) {
    fail(arguments.program.string() + " is not there; build it with -DDSAT_TRAINER=ON or give --trainer");
  }
  return arguments;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  std::printf("Trials are kept in %s\n\n", arguments.dir.c_str());
  std::printf(
      "| model | fitted at stage | stage | micro batch | predicted MB | measured MB | error | largest micro batch "
      "| predicted MB | measured MB | error | predicted largest (90 %%) | passes |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  int cases = 0, passed = 0;
  for (const Model& model : kModels) {
    const auto& wanted = arguments.models;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), model.name) == wanted.end()) continue;
    passed += check_model(arguments.program, arguments.dir, model);
    cases += 4;
  }
  std::printf("\n%d of %d cases pass\n", passed, cases);
  return passed >= kShareToPass * cases ? 0 : 1;
}
