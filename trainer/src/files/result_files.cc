// Turns what was measured into the keys that DeepSpeed's autotuner reads, and writes the file whole.
// Keys of dsat's own come after DeepSpeed's, which other readers ignore.
#include "files/result_files.h"

#include <cmath>

#include "dsat/base/files.h"

namespace dsat::trainer {
namespace {

// JSON has no numbers for what is not finite (docs/guard.md has the words).
Json number_or_word(const std::optional<double>& value) {
  if (!value) return nullptr;
  if (std::isnan(*value)) return "nan";
  if (std::isinf(*value)) return *value > 0 ? "inf" : "-inf";
  return *value;
}

template <class Values>
Json list_of(const Values& values) {
  Json list = Json::array();
  for (const auto& value : values) list.push_back(number_or_word(value));
  return list;
}

Json or_null(const std::optional<uint64_t>& value) { return value ? Json(*value) : Json(nullptr); }

}  // namespace

void ModelInfo::count_small(int64_t parameter_elements) {
  for (size_t i = 0; i < small_params.size(); ++i) {
    const bool is_small = static_cast<double>(parameter_elements) <= cost::kSmallParameters[i].elements;
    if (is_small) small_params[i] += parameter_elements;
  }
}

Json to_json(const ModelInfo& info) {
  Json json;
  json["num_params"] = info.num_params + info.num_frozen;
  json["trainable_num_params"] = info.num_params;
  json["activation_mem_per_gpu"] = info.activation_bytes;
  json["rank"] = 0;
  json["peak_memory"] = info.peak_bytes;
  json["device_memory"] = or_null(info.device_memory_bytes);
  json["world_size"] = info.world_size;
  json["largest_layer_params"] = info.largest_layer_params;
  for (size_t i = 0; i < info.small_params.size(); ++i) {
    if (info.small_params[i] > 0) json[cost::kSmallParameters[i].key] = info.small_params[i];
  }
  json["activation_checkpoints"] = info.recomputed_segments;
  if (const auto peaks = info.activation_peaks ? info.activation_peaks() : std::nullopt) {
    json["activation_peak_kept"] = peaks->kept_bytes;
    json["activation_peak_recomputed"] = peaks->recomputed_bytes;
  }
  return json;
}

Json to_json(const TuningMetrics& m) {
  const double latency_us = m.latency_us();
  Json json;
  json["fwd"] = m.forward_us;
  json["bwd"] = m.backward_us;
  json["step"] = m.step_us;
  json["latency"] = latency_us;
  json["FLOPS_per_gpu"] = m.flops_per_micro_step * static_cast<double>(m.accumulation) * 1e6 / latency_us;
  json["throughput"] = static_cast<double>(m.train_batch) * 1e6 / latency_us;
  json["rank"] = 0;
  json["peak_memory"] = m.peak_bytes;
  json["load_peak_memory"] = m.load_peak_bytes;
  json["device_memory"] = or_null(m.device_memory_bytes);
  json["world_size"] = m.world_size;
  json["samples"] = m.train_batch * m.measured_steps;
  json["wall_latency"] = m.wall_latency_us;
  json["model_state_bytes"] = m.model_state_bytes;
  json["host_memory_bytes"] = m.host_memory_bytes;
  json["skipped_steps"] = m.skipped_steps;
  json["precision"] = m.precision;
  json["losses"] = list_of(m.losses);
  json["grad_norms"] = list_of(m.grad_norms);
  return json;
}

void write_atomically(const std::string& path, const Json& json) { write_file_atomically(path, json.dump(2) + "\n"); }

}  // namespace dsat::trainer
