#include "search/cache.h"

#include <fstream>
#include <sstream>

#include "search/surfaces/draw.h"
#include "search/surfaces/measure.h"

namespace dsat::bench {
namespace {

std::string hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

uint64_t mix(uint64_t sum, const std::string& text) {
  for (const char c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return sum;
}

constexpr uint64_t kStart = 14695981039346656037u;

}  // namespace

std::filesystem::path Cache::file(const std::string& key) const { return folder_ / (hex(mix(kStart, key)) + ".json"); }

std::optional<std::vector<SeedScore>> Cache::find(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  std::ifstream in(file(key));
  const Json json = in ? Json::parse(in, nullptr, false) : Json();
  if (!json.is_object() || json.value("key", "") != key) return std::nullopt;
  std::vector<SeedScore> seeds;
  for (const Json& seed : json.at("seeds")) seeds.push_back(score_from_json(seed));
  return seeds;
}

void Cache::put(const std::string& key, const std::vector<SeedScore>& seeds) const {
  if (folder_.empty()) return;
  Json json{{"key", key}, {"seeds", Json::array()}};
  for (const SeedScore& seed : seeds) json["seeds"].push_back(to_json(seed));
  std::error_code ignored;
  std::filesystem::create_directories(folder_, ignored);
  const std::filesystem::path target = file(key), half = target.string() + ".new";
  std::ofstream(half) << json.dump();
  std::filesystem::rename(half, target, ignored);
}

std::string file_hash(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw Error("cannot read " + file.string());
  std::ostringstream content;
  content << in.rdbuf();
  return hex(mix(kStart, content.str()));
}

std::string fingerprint(const Surface& surface, const config::Space& space) {
  constexpr int kPoints = 200;
  uint64_t sum = mix(kStart, config::to_json(space).dump() + surface.base_config().dump());
  Draw draw(1, 5);
  for (int i = 0; i < kPoints; ++i) {
    const config::StageSpace& stage = space.stages[static_cast<size_t>(draw.uniform(0, 1) * space.stages.size())];
    std::vector<size_t> choice;
    for (const config::Axis& axis : stage.axes)
      choice.push_back(static_cast<size_t>(draw.uniform(0, 1) * axis.values.size()));
    const double most = static_cast<double>(surface.max_micro_batch);
    Json config = surface.base_config();
    testing::merge(config, config::overrides(stage, choice, static_cast<int64_t>(draw.log_uniform(1, most))));
    const Measurement measurement = measure(surface, config, 7, 0);
    sum = mix(sum, std::to_string(surface.truth(point_of(config)).peak_bytes) + " " +
                       std::to_string(measurement.duration_s) + " " +
                       std::to_string(measurement.answer.peak_bytes.value_or(0)) +
                       Json(measurement.answer.metrics).dump());
  }
  return hex(sum);
}

}  // namespace dsat::bench
