#include "runner/read_metrics.h"

#include <cmath>
#include <initializer_list>

#include "dsat/config/batch.h"
#include "dsat/config/json.h"

namespace dsat::host {

namespace {

constexpr double kTolerance = 0.02;
bool near(double a, double b) { return std::abs(a - b) <= kTolerance * std::abs(b); }

std::string number_text(double value) { return Json(value).dump(); }

// The number under one of `names`, nullopt when none is there.
Result<std::optional<double>> read_number(const Json& report, const std::string& file,
                                          std::initializer_list<const char*> names, bool may_be_zero) {
  for (const char* name : names) {
    const auto it = report.find(name);
    if (it == report.end()) continue;
    const std::string where = file + ": " + name;
    if (!it->is_number())
      return Status::invalid(where + " is not a number but " +
                             it->dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 60));
    const double value = it->get<double>();
    if (!std::isfinite(value)) return Status::invalid(where + " is not finite");
    if (value < 0) return Status::invalid(where + " is negative (" + number_text(value) + ")");
    if (value == 0 && !may_be_zero) return Status::invalid(where + " is 0");
    return std::optional<double>(value);
  }
  return std::optional<double>();
}

Result<Json> parse_report(std::string_view text, const std::string& file) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return Status::invalid(file + " is empty: the trial ended while it wrote it");
  }
  try {
    Json report = config::parse(text, file);
    if (!report.is_object()) return Status::invalid(file + " is not a JSON object");
    return report;
  } catch (const std::exception& error) {
    return Status::invalid(std::string(error.what()) + " (the result file is torn, or not JSON)");
  }
}

// Optional keys that say something of the run rather than of its speed. A senseless one is left out with a warning:
// it is not worth a trial.
void read_extras(const Json& report, const std::string& file, TrialReport& out) {
  const auto positive = [&](const char* name) -> std::optional<double> {
    const auto number = read_number(report, file, {name}, false);
    if (number.ok()) return number.value();
    out.warnings.push_back(number.status().message() + ": left out");
    return std::nullopt;
  };
  if (const auto bytes = positive("peak_memory")) out.peak_bytes = static_cast<uint64_t>(*bytes);
  if (const auto bytes = positive("device_memory")) out.device_memory_bytes = static_cast<uint64_t>(*bytes);
  if (const auto size = positive("world_size")) out.world_size = static_cast<int64_t>(*size);
}

void copy_positive(const Json& report, const char* name, Json& metrics) {
  const auto number = read_number(report, name, {name}, false);
  if (number.ok() && number.value()) metrics[name] = *number.value();
}

struct Measured {
  std::optional<double> forward, backward, step, latency, throughput, flops_per_gpu;
};

// An older engine counted in milliseconds: the product of throughput and latency tells.
void settle_units(Measured& m, double train_batch) {
  if (!m.latency || !m.throughput || !near(*m.throughput * *m.latency, train_batch * 1e3)) return;
  for (auto* time : {&m.forward, &m.backward, &m.step, &m.latency}) {
    if (*time) **time *= 1e3;
  }
}

// An older engine left accumulation out of latency, and so out of all that it computed from it: latency is then the sum
// of one forward, backward and step.
void settle_accumulation(Measured& m, double train_batch, double accumulation) {
  if (accumulation <= 1 || !m.latency || !m.forward || !m.backward) return;
  const double one_pass = *m.forward + *m.backward + m.step.value_or(0);
  if (!near(*m.latency, one_pass)) return;
  *m.latency *= accumulation;
  m.throughput = train_batch * 1e6 / *m.latency;
  if (m.flops_per_gpu) *m.flops_per_gpu /= accumulation;
}

void cross_check(Measured& m, double train_batch, std::vector<std::string>& warnings) {
  if (m.latency && !m.throughput) m.throughput = train_batch * 1e6 / *m.latency;
  if (m.throughput && !m.latency) m.latency = train_batch * 1e6 / *m.throughput;
  if (!m.latency || near(*m.throughput * *m.latency, train_batch * 1e6)) return;
  warnings.push_back("throughput " + number_text(*m.throughput) + " samples/s and latency " + number_text(*m.latency) +
                     " us do not agree with train_batch_size " + number_text(train_batch) +
                     ": the script measures something else");
}

Result<Measured> read_measured(const Json& report, const std::string& file) {
  Measured m;
  struct Field {
    std::optional<double>* target;
    std::initializer_list<const char*> names;
    bool may_be_zero;
  };
  // A step of zero microseconds, or FLOPs that nobody counted, are possible; an optimizer step in no time is not.
  for (const Field& field :
       {Field{&m.forward, {"forward", "fwd"}, true}, Field{&m.backward, {"backward", "bwd"}, true},
        Field{&m.step, {"step"}, true}, Field{&m.latency, {"latency"}, false},
        Field{&m.throughput, {"throughput"}, false}, Field{&m.flops_per_gpu, {"FLOPS_per_gpu"}, true}}) {
    const auto number = read_number(report, file, field.names, field.may_be_zero);
    if (!number.ok()) return number.status();
    *field.target = number.value();
  }
  return m;
}

Json to_metrics(const Measured& m) {
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

Result<TrialReport> read_metrics(std::string_view text, const std::string& file_name, const Json& config) {
  const auto report = parse_report(text, file_name);
  if (!report.ok()) return report.status();
  auto measured = read_measured(report.value(), file_name);
  if (!measured.ok()) return measured.status();

  TrialReport out;
  const auto batch = [&](const char* key) {
    const Json* value = config::find(config, key);
    return value != nullptr && value->is_number() ? value->get<double>() : 0.0;
  };
  Measured& m = measured.value();
  if (const double train_batch = batch(config::kTrainBatchKey); train_batch > 0) {
    settle_units(m, train_batch);
    settle_accumulation(m, train_batch, batch(config::kAccumulationKey));
    cross_check(m, train_batch, out.warnings);
  }
  out.metrics = to_metrics(m);
  if (out.metrics.empty()) {
    return Status::invalid(file_name + " has none of FLOPS_per_gpu, throughput, latency, forward, backward, step");
  }
  copy_positive(report.value(), "samples", out.metrics);
  copy_positive(report.value(), "wall_latency", out.metrics);
  read_extras(report.value(), file_name, out);
  return out;
}

Result<TrialReport> read_model_info(std::string_view text, const std::string& file_name) {
  const auto report = parse_report(text, file_name);
  if (!report.ok()) return report.status();
  for (const char* name : {"num_params", "trainable_num_params", "activation_mem_per_gpu"}) {
    const bool needed = std::string_view(name) == "num_params";
    const auto number = read_number(report.value(), file_name, {name}, !needed);
    if (!number.ok()) return number.status();
    if (needed && !number.value()) return Status::invalid(file_name + " has no num_params");
  }
  TrialReport out;
  out.metrics = Json::object();
  for (const auto& [name, value] : report.value().items()) {
    if (!value.is_number() || !std::isfinite(value.get<double>())) continue;
    if (name != "rank") out.metrics[name] = value;  // device_memory and world_size too: a profiler reckons with them
  }
  read_extras(report.value(), file_name, out);
  return out;
}

}  // namespace dsat::host
