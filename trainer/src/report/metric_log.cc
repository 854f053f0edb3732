#include "report/metric_log.h"

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
  if (!file_) throw Error("--metrics " + path_ + ": cannot be written; does its folder exist?");
}

void MetricLog::write(const std::string& phase, int64_t batch, const Json& metrics) {
  std::string line = phase + " " + std::to_string(batch + 1);
  for (const auto& [key, value] : metrics.items()) {
    char number[32];
    if (value.is_number()) std::snprintf(number, sizeof number, "%.6g", value.get<double>());
    line += "  " + key + " " + (value.is_number() ? number : value.dump());
  }
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
  if (file_.is_open()) {
    file_ << Json{{"phase", phase}, {"batch", batch}, {"metrics", metrics}}.dump() << "\n" << std::flush;
    if (!file_) throw Error(DSAT_INTERNAL, path_ + ": cannot be written: is the disk full?");
  }
  if (!context_.get_enable_tensorboard_logging()) return;
  for (const auto& [key, value] : metrics.items()) {
    if (value.is_number())
      context_.get_tensorboard_writer().add_scalar(phase + "/" + key, value.get<double>(), batch + 1);
  }
}

}  // namespace dsat::trainer
