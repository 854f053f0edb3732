// The host's interface for a plugin: the functions of dsat_host, and what they collect during one call.
//
// No argument of a plugin is trusted: NULL pointers, too long or too deep texts, too many requests, and calls at the
// wrong time or from the wrong thread are refused with a status. Threading: begin_call to end_call on one thread, which
// must also make the ops; log from any thread at any time. Ownership: a table is never freed, so a plugin's thread may
// call it after destroy and is refused. Errors: take_error() returns the reason of a refused request.
#ifndef DSAT_HOST_PLUGIN_SERVICE_TABLE_H_
#define DSAT_HOST_PLUGIN_SERVICE_TABLE_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "plugin/request_limits.h"
#include "plugin/strategy.h"

namespace dsat::host {

class ServiceTable {
 public:
  using Log = std::function<void(int severity, std::string_view message)>;  // [any-thread]

  static ServiceTable& make(Log log, bool profiler);
  ServiceTable(const ServiceTable&) = delete;
  ServiceTable& operator=(const ServiceTable&) = delete;

  const dsat_host* abi() const { return &abi_; }

  // `answers`: for an event; nullptr: a call in which no op is allowed.
  void begin_call(RequestAnswers* answers);
  void end_call();
  std::vector<Op> take_ops() { return std::move(ops_); }
  std::string take_error();  // the plugin's own error, and the host's refusal
  // Refuses everything from now on.
  void close();

 private:
  ServiceTable(Log log, bool profiler);
  static ServiceTable& self(const dsat_host* host) { return *static_cast<ServiceTable*>(host->host_data); }
  template <class Body>
  dsat_status op(const char* name, Body&& body) noexcept;
  dsat_status refuse(dsat_status status, std::string why);
  dsat_status count(size_t bytes);

  dsat_status create_trial(const dsat_trial_request* request, dsat_trial_id* id);
  dsat_status stop_trial(dsat_trial_id trial);
  dsat_status finish(dsat_str reason, dsat_trial_id best);
  dsat_status set_profile(dsat_str text);
  void set_error(dsat_str message) noexcept;
  void log(int severity, dsat_str message) noexcept;

  dsat_host abi_{};
  const bool profiler_;
  std::atomic<std::thread::id> caller_{};  // the thread of the current call

  // These belong to the current call; only its thread uses them.
  RequestAnswers* answers_ = nullptr;
  bool finished_ = false;
  size_t op_count_ = 0, op_bytes_ = 0;
  std::string error_, refusal_;
  std::vector<Op> ops_;

  std::mutex log_mutex_;
  Log log_;
  LogLimit log_limit_;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_PLUGIN_SERVICE_TABLE_H_
