// Checks the numbers of a result file. Then converts what older engines wrote to today's units, by the identity
// throughput x latency = train_batch_size.
#include "outputs/read_metrics.h"

#include <fmt/format.h>

#include <cmath>
#include <initializer_list>

#include "dsat/base/utf8.h"
#include "dsat/config/batch.h"
#include "dsat/config/json_numbers.h"
#include "dsat/error.h"
#include "outputs/plausible.h"

namespace dsat::host {

namespace {

// No engine writes more figures about a model.
constexpr size_t kMostFigures = 100;

constexpr double kTolerance = 0.02;
bool near(double a, double b) { return std::abs(a - b) <= kTolerance * std::abs(b); }

std::string number_text(double value) { return Json(value).dump(); }

// Returns the number under the first of `names` that is there; nullopt: none is there.
std::optional<double> read_number(const Json& report, const std::string& file, std::initializer_list<const char*> names,
                                  bool may_be_zero) {
  for (const char* name : names) {
    const auto it = report.find(name);
    if (it == report.end()) continue;
    const std::string where = file + ": " + name;
    if (!it->is_number()) {
      const std::string shown = shortened(config::text_of(*it), 60);
      throw Error(fmt::format("{} is not a number but {}", where, shown));
    }
    const double value = it->get<double>();
    if (!std::isfinite(value)) throw Error(where + " is not finite");
    if (value < 0) throw Error(fmt::format("{} is negative ({})", where, number_text(value)));
    if (value == 0 && !may_be_zero) throw Error(where + " is 0");
    return value;
  }
  return std::nullopt;
}

Json parse_report(std::string_view text, const std::string& file) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    throw Error(file + " is empty: the trial ended while it wrote it");
  }
  Json report;
  try {
    report = config::parse(text, file);
  } catch (const Error& error) {
    throw Error(fmt::format("{} (the result file is torn, or not JSON)", error.what()));
  }
  if (!report.is_object()) throw Error(file + " is not a JSON object");
  return report;
}

// Throws Error: no machine has so many bytes, parameters or devices.
void check_count(const std::string& file, const char* name, double value) {
  if (const std::string why = why_implausible(name, value); !why.empty()) {
    throw Error(fmt::format("{}: {}", file, why));
  }
}

// Reads optional keys that describe the run and not its speed. A wrong value is left out with a warning, since the
// trial is still worth its metrics.
void read_extras(const Json& report, const std::string& file, TrialReport& out) {
  const auto positive = [&](const char* name) -> std::optional<double> {
    const auto it = report.find(name);
    if (it != report.end() && it->is_null()) return std::nullopt;  // the trial does not know the value
    try {
      const std::optional<double> value = read_number(report, file, {name}, false);
      if (value) check_count(file, name, *value);
      return value;
    } catch (const Error& error) {
      out.warnings.push_back(fmt::format("{}: left out", error.what()));
      return std::nullopt;
    }
  };
  if (const auto bytes = positive("peak_memory")) out.peak_bytes = static_cast<uint64_t>(*bytes);
  if (const auto bytes = positive("device_memory")) out.device_memory_bytes = static_cast<uint64_t>(*bytes);
  if (const auto size = positive("world_size")) out.world_size = static_cast<int64_t>(*size);
}

void copy_positive(const Json& report, const char* name, Json& metrics) {
  const auto it = report.find(name);
  if (it == report.end() || !it->is_number()) return;
  const double value = it->get<double>();
  if (std::isfinite(value) && value > 0 && why_implausible(name, value).empty()) metrics[name] = value;
}

// The metrics as the engine wrote them. Times are in microseconds, or in milliseconds from an older engine.
struct EngineMetrics {
  std::optional<double> forward, backward, step, latency, throughput, flops_per_gpu;
};

// An older engine wrote milliseconds; the product of throughput and latency shows it.
void settle_units(EngineMetrics& m, double train_batch) {
  if (!m.latency || !m.throughput || !near(*m.throughput * *m.latency, train_batch * 1e3)) return;
  for (auto* time : {&m.forward, &m.backward, &m.step, &m.latency}) {
    if (*time) **time *= 1e3;
  }
}

// Every version of DeepSpeed's engine writes its rank beside the metrics. Other programs have no reason to do so.
bool is_of_engine(const Json& report) { return report.contains("rank"); }

// An older engine did not multiply latency, and what it computed from latency, by accumulation: its latency is the sum
// of one forward, backward and step. A user's program that writes the totals of a step has the same sum. The product of
// throughput and latency is right in both cases, so only the author of the file tells them apart.
void settle_accumulation(EngineMetrics& m, double train_batch, double accumulation) {
  if (accumulation <= 1 || !m.latency || !m.forward || !m.backward) return;
  const double one_pass = *m.forward + *m.backward + m.step.value_or(0);
  if (!near(*m.latency, one_pass)) return;
  *m.latency *= accumulation;
  m.throughput = train_batch * 1e6 / *m.latency;
  if (m.flops_per_gpu) *m.flops_per_gpu /= accumulation;
}

// A script may count the samples of a step once for each micro step, or those of one micro step alone. Its throughput
// then follows from batch and time. If it is too small, that is right only if the time is certainly a whole step's: a
// script that ignores the accumulation has the same product, and its throughput is true.
void settle_throughput(EngineMetrics& m, double train_batch, double accumulation, std::vector<std::string>& warnings) {
  if (accumulation <= 1 || !m.latency || !m.throughput) return;
  const double right = train_batch * 1e6 / *m.latency;
  const double one_pass = m.forward.value_or(0) + m.backward.value_or(0) + m.step.value_or(0);
  const bool is_too_large = near(*m.throughput, right * accumulation);
  const bool is_too_small = near(*m.throughput * accumulation, right) && near(*m.latency, one_pass * accumulation);
  if (!is_too_large && !is_too_small) return;
  warnings.push_back(fmt::format(
      "throughput {} samples/s is wrong by the factor gradient_accumulation_steps = {}: train_batch_size {} in {} us "
      "makes {}, which is used",
      number_text(*m.throughput), number_text(accumulation), number_text(train_batch), number_text(*m.latency),
      number_text(right)));
  m.throughput = right;
}

void cross_check(EngineMetrics& m, double train_batch, std::vector<std::string>& warnings) {
  if (m.latency && !m.throughput) m.throughput = train_batch * 1e6 / *m.latency;
  if (m.throughput && !m.latency) m.latency = train_batch * 1e6 / *m.throughput;
  if (!m.latency || near(*m.throughput * *m.latency, train_batch * 1e6)) return;
  warnings.push_back(
      fmt::format("throughput {} samples/s and latency {} us do not agree with train_batch_size {}: {}; have the "
                  "script read its batch sizes from the configuration, or give --arg-mapping KEY=FLAG",
                  number_text(*m.throughput), number_text(*m.latency), number_text(train_batch), kMeasuresElse));
}

EngineMetrics read_engine_metrics(const Json& report, const std::string& file, TrialReport& out) {
  EngineMetrics m;
  struct Field {
    std::optional<double>* target;
    std::initializer_list<const char*> names;
    bool may_be_zero;
  };
  // A step of zero microseconds is possible; a latency of zero is not.
  for (const Field& field :
       {Field{&m.forward, {"forward", "fwd"}, true}, Field{&m.backward, {"backward", "bwd"}, true},
        Field{&m.step, {"step"}, true}, Field{&m.latency, {"latency"}, false},
        Field{&m.throughput, {"throughput"}, false}, Field{&m.flops_per_gpu, {"FLOPS_per_gpu"}, true}}) {
    const std::optional<double> value = read_number(report, file, field.names, field.may_be_zero);
    const std::string why = value ? why_implausible(*field.names.begin(), *value) : "";
    if (why.empty()) {
      *field.target = value;
    } else {
      leave_out(*field.names.begin(), file, why, out);
    }
  }
  if (m.flops_per_gpu == 0) {  // FLOPS were not counted; this is common, so there is no warning
    m.flops_per_gpu.reset();
    out.left_out.emplace_back("FLOPS_per_gpu");
  }
  return m;
}

Json to_metrics(const EngineMetrics& m) {
  Json metrics = Json::object();
  const auto put = [&](const char* name, const std::optional<double>& value) {
    if (value) metrics[name] = *value;
  };
  put("forward", m.forward);
  put("backward", m.backward);
  put("step", m.step);
  put("latency", m.latency);
  put("throughput", m.throughput);
  put("FLOPS_per_gpu", m.flops_per_gpu);
  return metrics;
}

}  // namespace

TrialReport read_metrics(std::string_view text, const std::string& file_name, const Json& config) {
  const Json report = parse_report(text, file_name);
  TrialReport out;
  EngineMetrics m = read_engine_metrics(report, file_name, out);
  const auto batch = [&](const char* key) { return config::number_at(config, key).value_or(0); };
  if (const double train_batch = batch(config::kTrainBatchKey); train_batch > 0) {
    settle_units(m, train_batch);
    if (is_of_engine(report)) settle_accumulation(m, train_batch, batch(config::kAccumulationKey));
    settle_throughput(m, train_batch, batch(config::kAccumulationKey), out.warnings);
    cross_check(m, train_batch, out.warnings);
  }
  out.metrics = to_metrics(m);
  if (out.metrics.empty()) {
    throw Error(file_name + " has none of FLOPS_per_gpu, throughput, latency, forward, backward, step");
  }
  copy_positive(report, "samples", out.metrics);
  copy_positive(report, "wall_latency", out.metrics);
  copy_positive(report, "latency_spread", out.metrics);
  copy_positive(report, "latency_steps", out.metrics);
  read_extras(report, file_name, out);
  return out;
}

void add_wall_throughput(const Json& config, Json& metrics) {
  const double samples = config::number_at(config, config::kTrainBatchKey).value_or(0),
               wall_us = config::number_at(metrics, "wall_latency").value_or(0);
  if (samples > 0 && wall_us > 0) metrics["wall_throughput"] = samples * 1e6 / wall_us;
}

TrialReport read_model_info(std::string_view text, const std::string& file_name) {
  const Json report = parse_report(text, file_name);
  for (const char* name : {"num_params", "trainable_num_params", "activation_mem_per_gpu"}) {
    const bool needed = std::string_view(name) == "num_params";
    const auto number = read_number(report, file_name, {name}, !needed);
    if (needed && !number) throw Error(file_name + " has no num_params");
    if (number) check_count(file_name, name, *number);
  }
  TrialReport out;
  out.metrics = Json::object();
  size_t left_out = 0;
  for (const auto& [name, value] : report.items()) {
    if (!value.is_number() || name == "rank") continue;
    const bool fits = out.metrics.size() < kMostFigures && why_implausible(name, value.get<double>()).empty();
    if (fits) out.metrics[name] = value;  // device_memory and world_size too: a profiler needs them
    left_out += fits ? 0 : 1;
  }
  if (left_out > 0) {
    out.warnings.push_back(
        fmt::format("{}: {} numbers left out: too many, or beyond what a model or machine has", file_name, left_out));
  }
  read_extras(report, file_name, out);
  return out;
}

}  // namespace dsat::host
