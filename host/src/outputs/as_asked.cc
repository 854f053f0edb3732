// Compares the engines' own settings with the configuration, then the first axes of what they were fed with the micro
// batch. Loaders count only where no engine was seen, since a script may make several micro batches of what they give.
#include "outputs/as_asked.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "dsat/base/numbers.h"
#include "dsat/base/split.h"
#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/config/json_numbers.h"
#include "dsat/config/rules.h"

namespace dsat::host {
namespace {

using Shape = std::vector<std::optional<int64_t>>;  // nullopt: the size varies

// Pairs, views of a picture and several losses make this many samples of one.
constexpr int64_t kMostOfASample = 4;
// Batches that workers make ahead.
constexpr uint64_t kMostAhead = 16;

std::vector<Shape> parse_shapes(const std::string& inputs) {
  std::vector<Shape> shapes;
  for (const std::string& text : split(inputs, '.')) {
    Shape shape;
    for (const std::string& size : split(text, 'x')) shape.push_back(parse_integer(size));
    if (!text.empty()) shapes.push_back(std::move(shape));
  }
  return shapes;
}

struct Asked {
  std::optional<int64_t> micro_batch, data_parallel_size;
  int64_t accumulation = 1;
  int stage = 0;

  explicit Asked(const Json& config) : stage(config::zero_stage(config)) {
    micro_batch = config::whole_number_at<int64_t>(config, config::kMicroBatchKey);
    const auto given = config::whole_number_at<int64_t>(config, config::kAccumulationKey);
    accumulation = std::max<int64_t>(given.value_or(1), 1);
    const auto batch = config::whole_number_at<int64_t>(config, config::kTrainBatchKey);
    const bool divides = micro_batch && *micro_batch > 0;
    if (batch && divides) data_parallel_size = *batch / *micro_batch / accumulation;
  }
};

// Does the engine's data hold the micro batch? `had` is what they hold in its place.
enum class Verdict { follows, unknown, deviates };
Verdict judge(const std::vector<Shape>& shapes, const Asked& asked, int64_t& had) {
  const int64_t wanted = *asked.micro_batch;
  Verdict verdict = shapes.empty() ? Verdict::unknown : Verdict::deviates;
  for (const Shape& shape : shapes) {
    const std::optional<int64_t> samples = shape.front();
    if (!samples) {  // batches of so many tokens, for example
      verdict = Verdict::unknown;
      continue;
    }
    const bool divides = *samples % wanted == 0;
    const int64_t times = *samples / wanted;
    if (divides && (times <= kMostOfASample || times == asked.accumulation)) return Verdict::follows;
    if (std::find(shape.begin() + 1, shape.end(), wanted) != shape.end()) return Verdict::follows;  // time comes first
    // All samples may be one sequence, or one long first axis.
    const bool is_packed = *samples == 1 && std::any_of(shape.begin() + 1, shape.end(),
                                                        [&](const auto& size) { return !size || *size % wanted == 0; });
    if (divides || is_packed) verdict = Verdict::unknown;
    had = std::max(had, *samples);
  }
  return verdict;
}

// The first setting that no engine has as asked.
std::optional<Deviation> deviation_of_settings(const Asked& asked, const std::vector<EngineRun>& engines) {
  const auto data_parallel_size = [](const EngineRun& engine) -> std::optional<int64_t> {
    const int64_t samples = engine.micro_batch.value_or(0) * engine.accumulation.value_or(0);
    return samples > 0 && engine.train_batch ? std::optional(*engine.train_batch / samples) : std::nullopt;
  };
  struct Setting {
    std::string key;
    std::optional<int64_t> asked;
    std::optional<int64_t> (*of)(const EngineRun&);
  };
  const Setting settings[] = {
      {config::kMicroBatchKey, asked.micro_batch, [](const EngineRun& engine) { return engine.micro_batch; }},
      {config::kAccumulationKey, asked.accumulation, [](const EngineRun& engine) { return engine.accumulation; }},
      {"zero_optimization.stage", asked.stage, [](const EngineRun& engine) { return engine.stage; }},
      {kDataParallelSize, asked.data_parallel_size, data_parallel_size}};
  for (const Setting& setting : settings) {
    std::optional<int64_t> had;
    bool is_as_asked = !setting.asked;
    for (const EngineRun& engine : engines) {
      const std::optional<int64_t> own = setting.of(engine);
      is_as_asked = is_as_asked || own == setting.asked;
      if (!had) had = own;
    }
    if (had && !is_as_asked) return Deviation{setting.key, *had};
  }
  return std::nullopt;
}

// A data set with fewer samples than the micro batch leaves every batch short, and the engine counts it as full.
std::optional<Deviation> short_batches(const Asked& asked, const ProbeReport& report, uint64_t least_count) {
  const auto micro_batch = static_cast<uint64_t>(asked.micro_batch.value_or(0));
  const auto loaded = report.batches.find(micro_batch);
  if (loaded == report.batches.end() || loaded->second.count < least_count) return std::nullopt;
  const uint64_t most = loaded->second.most_samples;
  if (most >= micro_batch) return std::nullopt;
  return Deviation{config::kMicroBatchKey, static_cast<int64_t>(most), true};
}

bool follows_loader(const Asked& asked, uint64_t size, uint64_t count, uint64_t least_count) {
  const auto micro_batch = static_cast<uint64_t>(*asked.micro_batch);
  const auto accumulation = static_cast<uint64_t>(asked.accumulation);
  const auto ranks = static_cast<uint64_t>(asked.data_parallel_size.value_or(1));
  const bool fits = size == micro_batch || size == micro_batch * accumulation || size == micro_batch * ranks ||
                    size == micro_batch * accumulation * ranks;
  return fits && count * accumulation >= least_count;
}

// Loaders of one sample may give whole batches, and larger batches may be cut into micro batches.
std::optional<Deviation> deviation_of_loaders(const Asked& asked, const ProbeReport& report, uint64_t least_count) {
  const auto micro_batch = static_cast<uint64_t>(*asked.micro_batch);
  std::optional<Deviation> found;
  for (const auto& [size, loaded] : report.batches) {
    if (follows_loader(asked, size, loaded.count, least_count)) return std::nullopt;
    // The engine ends a trial behind its window, so many batches more are those of an evaluation.
    const bool is_of_window = loaded.count >= least_count && loaded.count <= 2 * least_count + kMostAhead;
    if (!is_of_window || loaded.most_samples < size) continue;
    if (size <= 1 || size % micro_batch == 0) return std::nullopt;
    found = Deviation{config::kMicroBatchKey, static_cast<int64_t>(size)};
  }
  return found;
}

std::optional<Deviation> deviation_of_data(const Asked& asked, const ProbeReport& report, uint64_t least_count) {
  if (asked.micro_batch.value_or(0) < 1) return std::nullopt;
  if (report.engines.empty()) return deviation_of_loaders(asked, report, least_count);
  int64_t had = 0;
  for (const EngineRun& engine : report.engines) {
    if (engine.micro_batch != asked.micro_batch) continue;
    if (judge(parse_shapes(engine.inputs), asked, had) != Verdict::deviates) return std::nullopt;
  }
  // A loader's batch may become one row of all its samples.
  const bool is_one_row =
      had == 1 && std::any_of(report.batches.begin(), report.batches.end(), [&](const auto& loaded) {
        return follows_loader(asked, loaded.first, loaded.second.count, least_count);
      });
  return had > 0 && !is_one_row ? std::optional(Deviation{config::kMicroBatchKey, had}) : std::nullopt;
}

}  // namespace

std::optional<Deviation> find_deviation(const Json& config, const ProbeReport& report, int window) {
  const Json* elastic = config::find(config, "elasticity.enabled");  // the engine chooses its batch sizes
  if (elastic != nullptr && *elastic == true) return std::nullopt;
  const Asked asked(config);
  const auto least_count = static_cast<uint64_t>(std::max(window, 0)) * static_cast<uint64_t>(asked.accumulation);
  if (auto found = short_batches(asked, report, least_count)) return found;
  if (auto found = deviation_of_settings(asked, report.engines)) return found;
  return deviation_of_data(asked, report, least_count);
}

std::string describe(const Deviation& deviation) {
  if (deviation.of_data_set) {
    return fmt::format("a rank's data set has fewer samples than the micro batch: its fullest batch held {}",
                       deviation.had);
  }
  if (deviation.key == kDataParallelSize) {
    return fmt::format("it ran with a data-parallel size of {}, which is not its configuration's", deviation.had);
  }
  if (deviation.key == config::kMicroBatchKey) {
    return fmt::format("its batches held {} samples, which is not its configuration's {}", deviation.had,
                       deviation.key);
  }
  return fmt::format("it ran with {} {}, which is not its configuration's", deviation.key, deviation.had);
}

std::string inputs_seen(const ProbeReport& report) {
  if (report.engines.empty()) return "";
  const EngineRun& engine = report.engines.front();
  const std::vector<Shape> shapes = parse_shapes(engine.inputs);
  const bool varies = engine.inputs.find('_') != std::string::npos;
  const bool shows_batch = std::any_of(shapes.begin(), shapes.end(), [&](const Shape& shape) {
    return shape.front() && (*shape.front() > 1 || !varies);
  });
  return shows_batch ? engine.inputs : "";
}

}  // namespace dsat::host
