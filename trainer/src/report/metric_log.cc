// Prints metrics, appends them to a file of JSON lines, and hands numbers to the event writer.
// A run that goes on from a checkpoint first drops the lines that it will write again.
#include "report/metric_log.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

namespace dsat::trainer {
namespace {

// What an interrupted run has reported and the one that takes it up will not. A line that was cut short is dropped.
std::string lines_before(const std::string& path, int64_t first_batch) {
  std::ifstream in(path);
  std::string kept;
  for (std::string line; std::getline(in, line);) {
    const Json entry = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (entry.is_object() && entry.value("batch", first_batch) < first_batch) kept += line + "\n";
  }
  return kept;
}

}  // namespace

MetricLog::MetricLog(TrialContext& context, const std::string& file, int64_t first_batch)
    : context_(context), path_(file) {
  if (path_.empty()) return;
  const std::string kept = first_batch > 0 ? lines_before(path_, first_batch) : "";
  file_.open(path_, std::ios::trunc);
  file_ << kept << std::flush;
  if (!file_) throw Error(fmt::format("--metrics {}: cannot be written; does its folder exist?", path_));
}

void MetricLog::write(const std::string& phase, int64_t batch, const Json& metrics) {
  std::string line = fmt::format("{} {}", phase, batch + 1);
  for (const auto& [key, value] : metrics.items()) {
    line += fmt::format("  {} {}", key, value.is_number() ? fmt::format("{:.6g}", value.get<double>()) : value.dump());
  }
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
  if (file_.is_open()) {
    file_ << Json{{"phase", phase}, {"batch", batch}, {"metrics", metrics}}.dump() << "\n" << std::flush;
    if (!file_) throw Error(DSAT_INTERNAL, fmt::format("{}: cannot be written: is the disk full?", path_));
  }
  if (!context_.get_enable_tensorboard_logging()) return;
  for (const auto& [key, value] : metrics.items()) {
    if (value.is_number())
      context_.get_tensorboard_writer().add_scalar(phase + "/" + key, value.get<double>(), batch + 1);
  }
}

}  // namespace dsat::trainer
