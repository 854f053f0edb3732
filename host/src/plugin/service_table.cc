// Checks each request of a plugin before it reaches the study. The functions are noexcept and turn exceptions into a
// status. Tables stay in a list for ever, so that a late call finds valid memory.
#include "plugin/service_table.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "plugin/profile_check.h"

namespace dsat::host {

ServiceTable& ServiceTable::make(Log log, bool profiler) {
  static std::mutex& mutex = *new std::mutex;
  static auto& all = *new std::vector<std::unique_ptr<ServiceTable>>;
  const std::lock_guard<std::mutex> lock(mutex);
  all.emplace_back(new ServiceTable(std::move(log), profiler));
  return *all.back();
}

ServiceTable::ServiceTable(Log log, bool profiler) : profiler_(profiler), log_(std::move(log)) {
  abi_.struct_size = sizeof(dsat_host);
  abi_.abi_minor = DSAT_ABI_MINOR;
  abi_.host_data = this;
  abi_.set_error = [](const dsat_host* host, dsat_str message) noexcept {
    if (host != nullptr) self(host).set_error(message);
  };
  abi_.log = [](const dsat_host* host, int32_t severity, dsat_str message) noexcept {
    if (host != nullptr) self(host).log(severity, message);
  };
  abi_.create_trial = [](const dsat_host* host, const dsat_trial_request* request, dsat_trial_id* id) noexcept {
    if (host == nullptr) return dsat_status{DSAT_INVALID_ARGUMENT};
    return self(host).op("create_trial", [&](ServiceTable& table) { return table.create_trial(request, id); });
  };
  abi_.stop_trial = [](const dsat_host* host, dsat_trial_id trial) noexcept {
    if (host == nullptr) return dsat_status{DSAT_INVALID_ARGUMENT};
    return self(host).op("stop_trial", [&](ServiceTable& table) { return table.stop_trial(trial); });
  };
  abi_.finish = [](const dsat_host* host, dsat_str reason, dsat_trial_id best) noexcept {
    if (host == nullptr) return dsat_status{DSAT_INVALID_ARGUMENT};
    return self(host).op("finish", [&](ServiceTable& table) { return table.finish(reason, best); });
  };
  abi_.set_profile = [](const dsat_host* host, dsat_str profile) noexcept {
    if (host == nullptr) return dsat_status{DSAT_INVALID_ARGUMENT};
    return self(host).op("set_profile", [&](ServiceTable& table) { return table.set_profile(profile); });
  };
  abi_.get_extension = [](const dsat_host*, const char*) noexcept -> const void* { return nullptr; };
}

void ServiceTable::begin_call(RequestAnswers* answers) {
  answers_ = answers;
  op_count_ = op_bytes_ = 0;
  error_.clear();
  refusal_.clear();
  ops_.clear();
  {
    const std::lock_guard<std::mutex> lock(log_mutex_);
    log_limit_.begin_call();
  }
  caller_ = std::this_thread::get_id();
}

void ServiceTable::end_call() {
  caller_ = std::thread::id();
  answers_ = nullptr;
}

void ServiceTable::close() {
  caller_ = std::thread::id();
  const std::lock_guard<std::mutex> lock(log_mutex_);
  log_ = nullptr;
}

// The plugin's error often only says that the host refused something, so the host's reason is added.
std::string ServiceTable::take_error() {
  std::string error = std::exchange(error_, {}), refusal = std::exchange(refusal_, {});
  if (error.empty()) return refusal;
  const bool adds = !refusal.empty() && error.find(refusal) == std::string::npos;
  return adds ? fmt::format("{} ({})", error, refusal) : error;
}

void ServiceTable::set_error(dsat_str message) noexcept {
  if (caller_.load() != std::this_thread::get_id()) return;
  try {
    error_ = bounded_line(message);
  } catch (const std::exception&) {
    error_.clear();
  }
}

void ServiceTable::log(int severity, dsat_str message) noexcept {
  try {
    std::string line = bounded_line(message);
    const std::lock_guard<std::mutex> lock(log_mutex_);
    if (log_ && log_limit_.admits(line)) log_(severity, line);
  } catch (const std::exception&) {  // losing a log line must not fail the call
  }
}

dsat_status ServiceTable::refuse(dsat_status status, std::string why) {
  refusal_ = std::move(why);
  return status;
}

template <class Body>
dsat_status ServiceTable::op(const char* name, Body&& body) noexcept {
  try {
    if (caller_.load() != std::this_thread::get_id()) {
      log(2, detail::str(fmt::format("{} is refused: it came outside of a call, or from another thread", name)));
      return DSAT_FAILED_PRECONDITION;
    }
    if (answers_ == nullptr) return refuse(DSAT_FAILED_PRECONDITION, fmt::format("{}: an op outside an event", name));
    if (finished_) return refuse(DSAT_FAILED_PRECONDITION, fmt::format("{}: an op after finish", name));
    const dsat_status status = body(*this);
    if (status != DSAT_OK && !refusal_.empty() && refusal_.rfind(name, 0) != 0) refusal_ = name + (": " + refusal_);
    return status;
  } catch (const std::exception& e) {
    refusal_ = e.what();
    return DSAT_INTERNAL;
  }
}

// Counts an op and its bytes.
dsat_status ServiceTable::count(size_t bytes) {
  if (++op_count_ > kMaxOpsPerEvent) {
    return refuse(DSAT_RESOURCE_EXHAUSTED, fmt::format("more than {} requests in one event", kMaxOpsPerEvent));
  }
  op_bytes_ += std::min(bytes, kMaxEventBytes + 1);
  if (op_bytes_ > kMaxEventBytes) {
    return refuse(DSAT_RESOURCE_EXHAUSTED, fmt::format("more than {} bytes of requests in one event", kMaxEventBytes));
  }
  return DSAT_OK;
}

dsat_status ServiceTable::create_trial(const dsat_trial_request* request, dsat_trial_id* id) {
  if (request == nullptr || id == nullptr) return refuse(DSAT_INVALID_ARGUMENT, "a NULL argument");
  if (!DSAT_HAS(request, dsat_trial_request, note)) {
    return refuse(DSAT_INVALID_ARGUMENT, fmt::format("a struct_size of {}", request->struct_size));
  }
  if (const dsat_status status = count(request->overrides_json.size); status != DSAT_OK) return status;
  std::string why;
  std::optional<Json> overrides = bounded_object(request->overrides_json, why);
  if (!overrides) return refuse(DSAT_INVALID_ARGUMENT, "overrides_json " + why);
  Op op;
  op.overrides = *std::move(overrides);
  if (request->parent != DSAT_NO_TRIAL) {
    if (!answers_->knows_trial(request->parent)) return refuse(DSAT_NOT_FOUND, "its parent does not exist");
    op.parent = request->parent;
  }
  op.repeat = (request->flags & DSAT_TRIAL_REPEAT) != 0;
  op.note = bounded_line(request->note);
  op.trial = answers_->create_trial(op);
  op.refused = !op.trial.has_value();
  ops_.push_back(op);
  if (op.refused) return DSAT_RESOURCE_EXHAUSTED;
  *id = *op.trial;
  return DSAT_OK;
}

dsat_status ServiceTable::stop_trial(dsat_trial_id trial) {
  if (const dsat_status status = count(0); status != DSAT_OK) return status;
  if (!answers_->knows_trial(trial)) return refuse(DSAT_NOT_FOUND, fmt::format("no trial {}", trial));
  Op op;
  op.kind = Op::Kind::stop_trial;
  op.trial = trial;
  ops_.push_back(op);
  return DSAT_OK;
}

dsat_status ServiceTable::finish(dsat_str reason, dsat_trial_id best) {
  Op op;
  op.kind = Op::Kind::finish;
  op.reason = bounded_line(reason);
  if (best != DSAT_NO_TRIAL) {
    if (!answers_->knows_trial(best)) return refuse(DSAT_NOT_FOUND, fmt::format("no trial {}", best));
    op.trial = best;
  }
  ops_.push_back(op);
  finished_ = true;
  return DSAT_OK;
}

dsat_status ServiceTable::set_profile(dsat_str text) {
  if (!profiler_) return refuse(DSAT_FAILED_PRECONDITION, "only a profiler has a profile");
  if (const dsat_status status = count(text.size); status != DSAT_OK) return status;
  std::string why;
  std::optional<Json> profile = bounded_object(text, why);
  if (!profile) return refuse(DSAT_INVALID_ARGUMENT, "profile_json " + why);
  why = profile_problem(*profile);
  if (!why.empty()) return refuse(DSAT_INVALID_ARGUMENT, why);
  Op op;
  op.kind = Op::Kind::set_profile;
  op.profile = *std::move(profile);
  ops_.push_back(op);
  return DSAT_OK;
}

}  // namespace dsat::host
