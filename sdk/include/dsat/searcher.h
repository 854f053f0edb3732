// The C++ layer over dsat/abi.h, for authors of searchers and profilers.
//
// Purpose: derive from Searcher<Self> or Profiler<Self>, write start, on_result and on_trial_exited (and both save and
//   restore, if the state is worth keeping), and name the class in DSAT_PLUGIN.
// Threading: the host calls from its control thread, one call at a time. log may be called from any thread.
// Ownership: strings and spans in Result and Exit are borrowed for the call.
// Errors: an op that the host refuses throws dsat::Error. Every exception becomes an error with its message.
// Units: as in dsat/abi.h.
#ifndef DSAT_SEARCHER_H_
#define DSAT_SEARCHER_H_

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "dsat/abi.h"
#include "dsat/error.h"
#include "dsat/option.h"
#include "dsat/outcome.h"
#include "dsat/study.h"

namespace dsat {

using TrialId = dsat_trial_id;
inline constexpr TrialId kNoTrial = DSAT_NO_TRIAL;

enum class Severity : int32_t { debug = 0, info = 1, warning = 2, error = 3 };

namespace detail {

// dump() writes null for NaN and infinity, and the trial would run without the key. So they are refused.
inline void refuse_unwritable_numbers(const Json& value, const std::string& where) {
  if (value.is_structured()) {
    for (const auto& item : value.items()) refuse_unwritable_numbers(item.value(), where + "." + item.key());
  } else if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    const char* number = std::isnan(value.get<double>()) ? "NaN" : "infinite";
    throw Error(where + " is " + number + ", which JSON cannot hold; give a finite number or leave it out");
  }
}

// `json` as text for the host. `what` names it in errors.
inline std::string text_of(const Json& json, const char* what) {
  try {
    return json.dump();
  } catch (const Json::exception&) {
    throw Error(std::string(what) + ": a text in it is not UTF-8; give every key and text in UTF-8");
  }
}

}  // namespace detail

// The argument of create_trial; see dsat_trial_request.
struct TrialRequest {
  Json overrides = Json::object();
  std::string note;
  TrialId parent = kNoTrial;
  bool repeat = false;
};

// The measurements of a completed trial; valid during on_result.
class Result {
 public:
  explicit Result(const dsat_result& raw) : raw_(raw) {}
  TrialId trial() const { return raw_.trial; }
  uint64_t step() const { return raw_.step; }
  size_t size() const { return raw_.metric_count; }
  const dsat_metric& operator[](size_t i) const { return raw_.metrics[i]; }
  std::optional<double> metric(std::string_view name) const {
    for (uint32_t i = 0; i < raw_.metric_count; ++i) {
      if (detail::view(raw_.metrics[i].name) == name) return raw_.metrics[i].value;
    }
    return std::nullopt;
  }

 private:
  const dsat_result& raw_;
};

// The end of a trial; valid during on_trial_exited.
class Exit {
 public:
  explicit Exit(const dsat_exit& raw) : raw_(raw) {}
  TrialId trial() const { return raw_.trial; }
  Outcome outcome() const { return outcome_of(raw_.outcome); }
  std::optional<uint64_t> peak_bytes() const {
    return raw_.peak_bytes == 0 ? std::nullopt : std::optional<uint64_t>(raw_.peak_bytes);
  }
  // A lower bound of the peak of a trial that ran out of memory: the memory in use plus the failed allocation.
  std::optional<uint64_t> peak_above_bytes() const {
    return raw_.peak_above_bytes == 0 ? std::nullopt : std::optional<uint64_t>(raw_.peak_above_bytes);
  }
  // How often the allocator freed its cache. More than 0: the trial was close to the limit. 0: never, or unknown.
  uint64_t allocator_retries() const { return raw_.allocator_retries; }
  int exit_code() const { return raw_.exit_code; }
  int term_signal() const { return raw_.term_signal; }
  unsigned attempt() const { return raw_.attempt; }
  std::string_view reason() const { return detail::view(raw_.reason); }

 private:
  const dsat_exit& raw_;
};

// The host's callbacks. A refusal throws dsat::Error. Copies are cheap handles.
class Host {
 public:
  explicit Host(const dsat_host* raw) : raw_(raw) {}

  // The trial's id. nullopt: the trial limit is reached, or 1,000 requests in a row cost no trial. Throws for overrides
  // that JSON cannot hold: NaN, an infinite number, a text that is not UTF-8.
  std::optional<TrialId> create_trial(const TrialRequest& request) const {
    const std::string overrides = detail::text_of(request.overrides, "create_trial: overrides");
    detail::refuse_unwritable_numbers(request.overrides, "create_trial: overrides");
    const dsat_trial_request raw{sizeof(dsat_trial_request), request.repeat ? uint32_t{DSAT_TRIAL_REPEAT} : 0u,
                                 request.parent, detail::str(overrides), detail::str(request.note)};
    TrialId id = kNoTrial;
    const dsat_status status = raw_->create_trial(raw_, &raw, &id);
    if (status == DSAT_RESOURCE_EXHAUSTED) return std::nullopt;
    check(status, "create_trial");
    return id;
  }
  void stop_trial(TrialId trial) const { check(raw_->stop_trial(raw_, trial), "stop_trial"); }
  void finish(std::string_view reason, TrialId best = kNoTrial) const {
    check(raw_->finish(raw_, detail::str(reason), best), "finish");
  }
  void set_profile(const Json& profile) const {
    const std::string text = detail::text_of(profile, "set_profile: profile");
    check(raw_->set_profile(raw_, detail::str(text)), "set_profile");
  }
  void log(Severity severity, std::string_view message) const {
    raw_->log(raw_, static_cast<int32_t>(severity), detail::str(message));
  }
  const dsat_host* raw() const { return raw_; }

 private:
  static void check(dsat_status status, const char* op) {
    if (status != DSAT_OK)
      throw Error(status, std::string(op) + " was refused by the host (status " + std::to_string(status) + ")");
  }
  const dsat_host* raw_;
};

// A strategy's description of itself; see dsat_descriptor.
struct Descriptor {
  std::string id;
  std::string name;
  std::string version;
  std::string summary;
  std::vector<OptionSpec> options;
  uint32_t state_version = 1;
  Json study{};  // a searcher's wishes if the user gives no option: {"zero_stages": [0, 1]}; null: none
};

// A searcher. Self has: static Descriptor descriptor(); Self(Host, const Options&);
//   void start(const Study&); void on_result(const Result&); void on_trial_exited(const Exit&);
//   both or neither, and public: std::string save() const; void restore(const Study&, std::string_view state);
template <class Self>
class Searcher {
 public:
  static constexpr const char* kFactoryId = DSAT_SEARCHER_FACTORY;
  explicit Searcher(Host host) : host_(host) {}

 protected:
  const Host& host() const { return host_; }
  std::optional<TrialId> create_trial(const TrialRequest& request) { return host_.create_trial(request); }
  void stop_trial(TrialId trial) { host_.stop_trial(trial); }
  void finish(std::string_view reason, TrialId best = kNoTrial) { host_.finish(reason, best); }
  void log(Severity severity, std::string_view message) const { host_.log(severity, message); }

 private:
  Host host_;
};

// A profiler: a searcher that also hands over a profile.
template <class Self>
class Profiler : public Searcher<Self> {
 public:
  static constexpr const char* kFactoryId = DSAT_PROFILER_FACTORY;
  using Searcher<Self>::Searcher;

 protected:
  void set_profile(const Json& profile) { this->host().set_profile(profile); }
};

}  // namespace dsat

#include "dsat/plugin.h"

#endif  // DSAT_SEARCHER_H_
