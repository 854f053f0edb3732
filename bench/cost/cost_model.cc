// How well memory is foretold from few trials: the tables of docs/cost-model.md.
//
//   bench_cost_model [--whole] [--trainer PATH] [--dir DIR]
//   bench_cost_model --speed      (how long a decision takes in a long study; no training)
//
// A study is one model shape, with activation checkpointing or without, on 1 to 4 ranks. It makes a profile of three
// trials: the model-information trial and two measured ones at a single ZeRO stage, where the profiler would
// (cost::next_to_measure). Then either one more there, or three as a careful search would make them: at each other
// stage the micro batch that is 95 % sure to fit. At all three times it writes down the largest micro batch and its
// peak for every stage and for one other number of ranks, and only then trains there: at the predicted largest micro
// batch and at the next one, without a limit. Peaks of the trainer are the same in every run, so the prediction is
// exact if the first peak is within the device's memory and the second is not.
//
// The sample is one shape of each model; --whole all of them (about a second a trial, some 110 and 330 trials).
// --dir: trials are kept there, and those that are there already are not run again.
// Exit status: 0 when median error, exact share and under-estimates are as promised, 1 when not, 2 when it cannot run.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "dsat/base/units.h"
#include "dsat/cost/memory.h"
#include "dsat/cost/observation_window.h"

namespace {

namespace fs = std::filesystem;
using dsat::Json;

// What the cost model promises. An interval is 90 %: one peak in twenty may lie above it.
constexpr double kMedianError = 0.02;
constexpr double kExactShare = 0.9;
constexpr double kUnderestimates = 0.05;
constexpr int64_t kLargestMeasured = 1024;  // the profiler's own bound

// What was measured before a prediction.
struct Knowledge {
  const char* name;
  bool is_promised;  // the promise holds for it
};
constexpr Knowledge kKnowledge[] = {
    {"profile", false}, {"profile, one more", true}, {"profile, three of a search", true}};

struct Shape {
  const char* model;
  const char* arguments;
  const char* device_memory;
};

// The first of each model is the sample.
const Shape kShapes[] = {
    {"gpt", "--model gpt --layers 4 --hidden 96 --heads 6 --seq 40 --vocab 700", "60MiB"},
    {"resnet", "--model resnet --depth 20 --image 12", "24MiB"},
    {"mlp", "--model mlp --layers 16 --hidden 80", "6MiB"},
    {"gpt", "--model gpt --layers 9 --hidden 48 --heads 2 --seq 64 --vocab 300", "48MiB"},
    {"gpt", "--model gpt --layers 2 --hidden 128 --heads 8 --seq 24 --vocab 2000", "56MiB"},
    {"resnet", "--model resnet --depth 8 --image 24", "20MiB"},
    {"resnet", "--model resnet --depth 14 --image 20", "24MiB"},
    {"mlp", "--model mlp --layers 6 --hidden 192", "12MiB"},
    {"mlp", "--model mlp --layers 40 --hidden 40", "5MiB"},
};
constexpr size_t kSampledShapes = 3;

// What one run of the trainer trains, and what decides its memory.
struct Place {
  const Shape* shape = nullptr;
  bool checkpointing = false;
  int ranks = 1;
  int stage = 0;
};

[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "bench_cost_model: %s\n", message.c_str());
  std::exit(2);
}

double device_bytes(const Place& place) { return static_cast<double>(dsat::parse_size(place.shape->device_memory)); }

Json config_of(const Place& place, int64_t micro_batch) {
  return {{"train_micro_batch_size_per_gpu", micro_batch},
          {"gradient_accumulation_steps", 1},
          {"optimizer", {{"type", "AdamW"}, {"params", {{"lr", 1e-3}}}}},
          {"zero_optimization",
           {{"stage", place.stage},
            {"reduce_bucket_size", 20'000},
            {"allgather_bucket_size", 20'000},
            {"overlap_comm", false}}}};
}

dsat::cost::Setup setup_of(const Place& place, int64_t micro_batch) {
  return dsat::cost::setup_from_config(config_of(place, micro_batch), place.ranks, dsat::cost::Engine::by_layer);
}

class Trainer {
 public:
  Trainer(fs::path program, fs::path dir) : program_(std::move(program)), dir_(std::move(dir)) {}

  // The file that the trial wrote; nullopt: out of memory.
  std::optional<Json> run(const Place& place, int64_t micro_batch, bool limited, bool information = false) const {
    const fs::path dir = dir_ / name_of(place, micro_batch, limited, information);
    const fs::path result = dir / "result.json", log = dir / "output.log";
    if (!fs::exists(result) && !ran_out(log)) start(place, micro_batch, limited, information, dir);
    if (fs::exists(result)) return Json::parse(text_of(result));
    if (!ran_out(log)) fail("a trial ended without a result; read " + log.string());
    return std::nullopt;
  }

  double peak(const Place& place, int64_t micro_batch) const {
    return run(place, micro_batch, /*limited=*/false)->at("peak_memory").get<double>();
  }

 private:
  static std::string text_of(const fs::path& file) {
    std::ifstream stream(file);
    std::stringstream text;
    text << stream.rdbuf();
    return text.str();
  }
  static bool ran_out(const fs::path& log) { return text_of(log).find("out of memory") != std::string::npos; }

  static std::string name_of(const Place& place, int64_t micro_batch, bool limited, bool information) {
    std::string name = place.shape->arguments;
    name.erase(0, name.find(' ') + 1);
    std::replace(name.begin(), name.end(), ' ', '_');
    return name + (place.checkpointing ? "-recomputed" : "") + "-ranks" + std::to_string(place.ranks) + "-stage" +
           std::to_string(place.stage) + (information ? "-information" : "-" + std::to_string(micro_batch)) +
           (limited ? "-limited" : "");
  }

  void start(const Place& place, int64_t micro_batch, bool limited, bool information, const fs::path& dir) const {
    fs::create_directories(dir);
    Json config = config_of(place, micro_batch);
    config["autotuning"] = {{"enabled", true},
                            {"start_profile_step", 0},
                            {"end_profile_step", 0},
                            {"metric_path", (dir / "result.json").string()},
                            {"model_info_path", (dir / "result.json").string()},
                            {"model_info", {{"profile", information}}}};
    std::ofstream(dir / "ds_config.json") << config.dump(2);
    std::string command = "'" + program_.string() + "' " + place.shape->arguments + " --ranks " +
                          std::to_string(place.ranks) + (place.checkpointing ? " --activation-checkpointing" : "");
    if (limited) command += std::string(" --device-memory ") + place.shape->device_memory;
    command += " --deepspeed_config '" + (dir / "ds_config.json").string() + "' > '" + (dir / "output.log").string() +
               "' 2>&1";
    if (std::system(command.c_str()) == -1) fail("cannot start a shell");
  }

  fs::path program_, dir_;
};

// All that is known when the predictions are made.
struct Study {
  dsat::cost::Inputs inputs;
  std::vector<dsat::cost::Observation> observations;
  int out_of_memory = 0;
};

// What the model-information trial tells.
Study inform(const Trainer& trainer, const Place& place) {
  Study study;
  const Json info = *trainer.run(place, 1, /*limited=*/true, /*information=*/true);
  study.inputs.size = {info.at("num_params").get<double>(), info.at("trainable_num_params").get<double>(),
                       info.at("largest_layer_params").get<double>()};
  const double activation = info.at("activation_mem_per_gpu").get<double>();
  study.inputs.activation_bytes_at_micro_batch_1 = activation;
  study.inputs.recomputes_activations = info.at("activation_checkpoints").get<int>() > 0;
  study.inputs.device_memory_bytes = info.at("device_memory").get<double>();
  study.inputs.fixed_bytes = dsat::cost::fixed_bytes_by_forward(study.inputs.size, setup_of(place, 1),
                                                                info.at("peak_memory").get<double>(), activation);
  return study;
}

void measure_at(const Trainer& trainer, const Place& place, int64_t micro_batch, Study& study) {
  dsat::cost::Observation seen{setup_of(place, micro_batch), false, std::nullopt};
  const std::optional<Json> result = trainer.run(place, micro_batch, /*limited=*/true);
  seen.out_of_memory = !result;
  study.out_of_memory += seen.out_of_memory ? 1 : 0;
  if (result) seen.peak_bytes = result->at("peak_memory").get<double>();
  study.observations.push_back(seen);
}

// As the profiler does with --profile-trials 3, and with 4.
void measure(const Trainer& trainer, const Place& place, Study& study) {
  const int64_t trials_left = study.observations.empty() ? 2 : 1;
  const auto fit = dsat::cost::fit_memory(study.inputs, study.observations);
  const int64_t micro_batch = dsat::cost::next_to_measure(fit, setup_of(place, 1), trials_left);
  measure_at(trainer, place, std::min(micro_batch, kLargestMeasured), study);
}

void search(const Trainer& trainer, Place place, Study& study) {
  for (int others = 1; others < 4; ++others) {
    place.stage = (place.stage + 1) % 4;
    const auto fit = dsat::cost::fit_memory(study.inputs, study.observations);
    const auto sure = static_cast<int64_t>(dsat::cost::micro_batch_ceiling(fit, setup_of(place, 1)).low);
    measure_at(trainer, place, std::max<int64_t>(1, sure), study);
  }
}

struct Case {
  size_t knowledge = 0;  // in kKnowledge
  std::string group;     // of the summary
  double error = 0;      // of the peak at the predicted largest micro batch, as a share of the measured one
  bool exact = false;
  bool too_large = false;  // the predicted micro batch does not fit
  bool under = false;      // the measured peak is above the interval
};

std::string measured_at(const Study& study) {
  std::string text;
  for (const auto& seen : study.observations) {
    text += (text.empty() ? "" : " ") + std::to_string(seen.setup.micro_batch) + (seen.out_of_memory ? "!" : "");
    if (seen.setup.stage != study.observations.front().setup.stage) text += "@" + std::to_string(seen.setup.stage);
  }
  return text;
}

Case check(const Trainer& trainer, size_t knowledge, const Study& study, const Place& fitted, const Place& place) {
  const auto fit = dsat::cost::fit_memory(study.inputs, study.observations);
  const dsat::cost::Interval ceiling = dsat::cost::micro_batch_ceiling(fit, setup_of(place, 1));
  const int64_t largest = std::max<int64_t>(1, std::llround(ceiling.value));
  const dsat::cost::Interval predicted = dsat::cost::predict_peak(fit, setup_of(place, largest));

  const double measured = trainer.peak(place, largest), next = trainer.peak(place, largest + 1);
  Case result;
  result.knowledge = knowledge;
  result.group = std::string(place.shape->model) + (place.checkpointing ? ", recomputed" : "");
  result.error = (predicted.value - measured) / measured;
  result.too_large = ceiling.value >= 1 && measured > device_bytes(place);
  result.exact = !result.too_large && next > device_bytes(place);
  result.under = measured > predicted.high;
  // By how many samples it is wrong, from the two peaks.
  const double off = std::floor((device_bytes(place) - measured) / std::max(1.0, next - measured));
  std::printf(
      "| %-6s | %s | %d, %d | %s | %d, %d | %.0f (%.0f to %.0f) | "
      "%+.0f | %.3f | %.3f | %+.2f %% | %s |\n",
      place.shape->model, place.checkpointing ? "yes" : "no", fitted.ranks, fitted.stage, measured_at(study).c_str(),
      place.ranks, place.stage, ceiling.value, ceiling.low, ceiling.high, 0.0 - off, predicted.value / 1e6,
      measured / 1e6, 100 * result.error, result.under ? "yes" : "no");
  std::fflush(stdout);
  return result;
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<size_t>(share * static_cast<double>(values.size())))];
}

// One row of the summary; true when it keeps what is promised.
bool summarise(size_t knowledge, const char* name, const std::vector<Case>& cases) {
  std::vector<double> errors;
  double exact = 0, under = 0, too_large = 0;
  for (const Case& c : cases) {
    errors.push_back(std::abs(c.error));
    exact += c.exact;
    under += c.under;
    too_large += c.too_large;
  }
  const auto count = static_cast<double>(cases.size());
  std::printf("| %s | %s | %zu | %.2f %% | %.2f %% | %.0f %% | %.1f %% | %.0f %% |\n", kKnowledge[knowledge].name, name,
              cases.size(), 100 * quantile(errors, 0.5), 100 * quantile(errors, 0.9), 100 * exact / count,
              100 * under / count, 100 * too_large / count);
  return quantile(errors, 0.5) <= kMedianError && exact >= kExactShare * count && under <= kUnderestimates * count;
}

bool summarise(const std::vector<Case>& cases) {
  std::printf(
      "\n| measured | cases | number | median error | 90 %% within | largest micro batch exact | peak above its "
      "interval (promised: at most %.0f %%) | largest too large |\n|---|---|---|---|---|---|---|---|\n",
      100 * kUnderestimates);
  bool kept = true;
  for (size_t knowledge = 0; knowledge < std::size(kKnowledge); ++knowledge) {
    std::map<std::string, std::vector<Case>> groups;
    std::vector<Case> all;
    for (const Case& c : cases) {
      if (c.knowledge != knowledge) continue;
      groups[c.group].push_back(c);
      all.push_back(c);
    }
    for (const auto& [name, group] : groups) summarise(knowledge, name.c_str(), group);
    kept = (summarise(knowledge, "all", all) || !kKnowledge[knowledge].is_promised) && kept;
  }
  return kept;
}

// What a searcher does after each trial of a study of `trials`, of which one in eight runs out of memory: takes the
// trial in, fits, and asks for a ceiling. The study has 60 setups.
void time_decisions(int trials) {
  dsat::cost::Inputs inputs;
  inputs.size = {1e9, 1e9, 5e7};
  inputs.activation_bytes_at_micro_batch_1 = 1e9;
  inputs.device_memory_bytes = 80e9;
  dsat::cost::ObservationWindow window;
  const auto observation = [&](int64_t trial) {
    dsat::cost::Observation seen;
    seen.setup.stage = static_cast<int>(trial % 4);
    seen.setup.precision = seen.setup.accumulation_dtype = dsat::cost::Precision::bf16;
    seen.setup.data_parallel_size = 8;
    seen.setup.reduce_bucket_elements = 1e6 * static_cast<double>(1 + trial * 7 % 15);
    seen.setup.micro_batch = 1 + trial * 11 % 41;
    seen.out_of_memory = trial % 8 == 7;
    if (!seen.out_of_memory) {
      seen.peak_bytes = dsat::cost::model_state_bytes(inputs.size, seen.setup) +
                        dsat::cost::buffer_bytes(inputs.size, seen.setup) + 2e9 +
                        1.2e9 * static_cast<double>(seen.setup.micro_batch);
    }
    return seen;
  };
  for (int trial = 0; trial < trials; ++trial) window.add(observation(trial));
  constexpr int kRepeats = 100;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kRepeats; ++i) {
    window.add(observation(trials + i));
    const auto fit = dsat::cost::fit_memory(inputs, window.observations());
    dsat::cost::micro_batch_ceiling(fit, observation(i).setup);
  }
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  std::printf("| %d | %zu | %.0f |\n", trials, window.observations().size(), took.count() / kRepeats);
}

int speed() {
  std::printf("| trials | kept | microseconds a decision |\n|---|---|---|\n");
  for (const int trials : {16, 100, 1'000, 10'000, 100'000}) time_decisions(trials);
  return 0;
}

struct Arguments {
  fs::path program, dir;
  bool whole = false;
  bool speed = false;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments{fs::absolute(argv[0]).parent_path() / "dsat-trial",
                      fs::temp_directory_path() / ("dsat-bench-" + std::to_string(getpid()))};
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    if (text == "--trainer" && i + 1 < argc) {
      arguments.program = fs::absolute(argv[++i]);
    } else if (text == "--dir" && i + 1 < argc) {
      arguments.dir = fs::absolute(argv[++i]);
    } else if (text == "--whole") {
      arguments.whole = true;
    } else if (text == "--speed") {
      arguments.speed = true;
    } else {
      fail("'" + text +
           "' is not known; usage: bench_cost_model [--whole | --speed] "
           "[--trainer PATH] [--dir DIR]");
    }
  }
  if (!arguments.speed && !fs::exists(arguments.program)) {
    fail(arguments.program.string() + " is not there; build it with -DDSAT_TRAINER=ON or give --trainer");
  }
  return arguments;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  if (arguments.speed) return speed();
  const Trainer trainer(arguments.program, arguments.dir);
  std::printf("Trials are kept in %s\n\n", arguments.dir.c_str());
  std::printf(
      "| model | recomputed | fitted at ranks, stage | micro batches "
      "(! out of memory) | ranks, stage | predicted "
      "largest (90 %%) | off by | predicted MB | measured MB | error | "
      "above interval |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|\n");
  std::vector<Case> cases;
  int studies = 0, out_of_memory = 0, measured = 0;
  for (size_t shape = 0; shape < (arguments.whole ? std::size(kShapes) : kSampledShapes); ++shape) {
    for (const bool checkpointing : {false, true}) {
      // Ranks and stages take turns, so that all of them come up whatever is run.
      const Place fitted{&kShapes[shape], checkpointing, 1 + (studies + 1) % 4, (3 * studies + 1) % 4};
      std::vector<Place> places;
      for (int stage = 0; stage <= 3; ++stage) places.push_back({fitted.shape, checkpointing, fitted.ranks, stage});
      places.push_back({fitted.shape, checkpointing, 1 + fitted.ranks % 4, (studies + 2) % 4});
      std::array<Study, std::size(kKnowledge)> known;
      known[0] = inform(trainer, fitted);
      for (int trial = 0; trial < 2; ++trial) measure(trainer, fitted, known[0]);
      known[2] = known[1] = known[0];
      measure(trainer, fitted, known[1]);
      search(trainer, fitted, known[2]);
      for (size_t i = 0; i < known.size(); ++i) {
        for (const Place& place : places) cases.push_back(check(trainer, i, known[i], fitted, place));
        out_of_memory += known[i].out_of_memory - (i > 0 ? known[0].out_of_memory : 0);
        measured += static_cast<int>(known[i].observations.size() - (i > 0 ? known[0].observations.size() : 0));
      }
      ++studies;
    }
  }
  const bool kept = summarise(cases);
  std::printf("\n%d of %d measured trials ran out of memory\n", out_of_memory, measured);
  return kept ? 0 : 1;
}
