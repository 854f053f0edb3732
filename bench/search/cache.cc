// One JSON file a key, named by the key's hash. The file contains the key, so that a collision is noticed. A run goes
// on if its cache cannot be written.
#include "search/cache.h"

#include <fmt/format.h>

#include "dsat/base/files.h"
#include "search/surfaces/draw.h"
#include "search/surfaces/hash.h"
#include "search/surfaces/measure.h"

namespace dsat::bench {
namespace {

std::string hex(uint64_t value) { return fmt::format("{:016x}", value); }

}  // namespace

std::filesystem::path Cache::file(const std::string& key) const { return folder_ / (hex(fnv1a(key)) + ".json"); }

Json Cache::find(const std::string& key) const {
  if (folder_.empty()) return nullptr;
  const FileText text = try_read_file(file(key));
  const Json json = Json::parse(text.bytes, nullptr, false);
  if (!json.is_object() || json.value("key", "") != key) return nullptr;
  return json.value("value", Json());
}

void Cache::put(const std::string& key, const Json& value) const {
  if (folder_.empty()) return;
  const Json json{{"key", key}, {"value", value}};
  std::error_code ignored;
  std::filesystem::create_directories(folder_, ignored);
  try {
    write_file_atomically(file(key), json.dump(), Durability::renamed);
  } catch (const Error&) {
  }
}

std::string file_hash(const std::filesystem::path& file) { return hex(fnv1a(read_file(file))); }

std::string fingerprint(const Surface& surface, const config::Space& space) {
  constexpr int kPoints = 200;
  uint64_t hash = fnv1a(config::to_json(space).dump() + surface.base_config().dump());
  Draw draw(1, 5);
  for (int i = 0; i < kPoints; ++i) {
    const config::StageSpace& stage = space.stages[static_cast<size_t>(draw.uniform(0, 1) * space.stages.size())];
    std::vector<size_t> choice;
    for (const config::Axis& axis : stage.axes)
      choice.push_back(static_cast<size_t>(draw.uniform(0, 1) * axis.values.size()));
    const double most = static_cast<double>(surface.max_micro_batch);
    Json config = surface.base_config();
    testing::merge(config, config::overrides(stage, choice, static_cast<int64_t>(draw.log_uniform(1, most))));
    const SurfaceTrial trial = measure(surface, config, 7, 0), beside = measure(surface, config, 7, 0, false, 1000);
    const Truth truth = surface.truth(point_of(config));
    hash = fnv1a(fmt::format("{:f} {:g} {:f} {:f} {}{}", truth.peak_bytes, truth.latency_s(), trial.duration_s,
                             beside.duration_s, trial.answer.peak_bytes.value_or(0), Json(trial.answer.metrics).dump()),
                 hash);
  }
  return hex(hash);
}

}  // namespace dsat::bench
