// Runs each check in its own process. A study's ops are also compared between two processes, in which addresses and
// hash seeds differ.
#include "dsat/host/validate.h"

#include <fmt/format.h>

#include <system_error>

#include "base/guarded.h"
#include "dsat/base/utf8.h"
#include "plugin/isolated_strategy.h"
#include "plugin/plugin_process.h"
#include "validate/checks.h"

namespace dsat::host {
namespace {

struct CheckVerdict {
  CheckResult result;
  std::string digest;
};

std::string one_line(const Json& json) { return json.is_string() ? printable_line(json.get<std::string>()) : ""; }

class Validation {
 public:
  Validation(const std::filesystem::path& file, const PluginProcesses& processes,
             const std::function<void(const CheckResult&)>& on_result, const std::vector<std::string>& host_options)
      : file_(std::filesystem::absolute(file)),
        processes_(processes),
        on_result_(on_result),
        host_options_(host_options) {}

  void run() {
    std::vector<PluginInfo> offered;
    for (size_t i = 0; i < all_checks().size(); ++i) {
      const Check& check = all_checks()[i];
      if (i == kLoading) offered = describe_apart(file_, processes_);
      if (!check.of_strategy && !report(run_apart(check, nullptr)) && i < kLoading) return;
      if (!check.of_strategy) continue;
      for (const PluginInfo& plugin : offered) report(verdict_of(check, plugin));
    }
  }

 private:
  bool report(const CheckVerdict& verdict) const {
    on_result_(verdict.result);
    return verdict.result.status <= CheckStatus::warned;
  }

  CheckVerdict verdict_of(const Check& check, const PluginInfo& plugin) const {
    CheckVerdict verdict = run_apart(check, &plugin);
    if (verdict.digest.empty()) return verdict;
    const CheckVerdict again = run_apart(check, &plugin);
    if (again.result.status > CheckStatus::warned) return again;
    if (again.digest != verdict.digest) {
      verdict.result.status = CheckStatus::failed;
      verdict.result.reason = "the same events get different answers in another process";
    }
    return verdict;
  }

  CheckVerdict run_apart(const Check& check, const PluginInfo* plugin) const {
    CheckVerdict verdict{{check.name, plugin != nullptr ? plugin->name : "", CheckStatus::crashed, ""}, ""};
    std::string doing, printed;
    int lines = 0;
    try {
      PluginProcess process(processes_, {}, [&](const std::string& line) { ++lines, printed = line; });
      Json request{{"call", "check"}, {"check", check.name}, {"file", file_.string()}, {"host_options", host_options_}};
      if (plugin != nullptr) request["id"] = plugin->id, request["kind"] = static_cast<int>(plugin->kind);
      Json answer;
      process.call(request, [&](const Message& message) {
        answer = message.json();
        if (!answer.contains("doing")) return !answer.contains("log");
        process.renew_deadline();  // a check makes many calls, and the time limit is for one
        if (const std::string what = one_line(answer["doing"]); !what.empty()) doing = what;
        return false;
      });
      if (answer.contains("error")) throw ProcessFailed(one_line(answer["error"]));
      const int status = answer.at("status").get<int>();
      if (status < 0 || status > static_cast<int>(CheckStatus::failed)) throw ProcessFailed("has sent no result");
      verdict.result.status = static_cast<CheckStatus>(status);
      verdict.result.reason = one_line(answer.at("reason"));
      verdict.digest = answer.at("digest").get<std::string>();
    } catch (const ProcessFailed& failure) {
      verdict.result.reason = fmt::format("{}{}its process {}", doing, doing.empty() ? "" : ": ", failure.what());
    } catch (const Json::exception&) {
      verdict.result.reason = "its process has sent no result";
    }
    if (lines == 0) return verdict;
    if (verdict.result.status == CheckStatus::crashed)
      verdict.result.reason += fmt::format("; it printed '{}'", printed);
    if (verdict.result.status == CheckStatus::passed) {
      verdict.result.status = CheckStatus::warned;
      verdict.result.reason = fmt::format("prints {} lines ('{}'): use log", lines, printed);
    }
    return verdict;
  }

  const std::filesystem::path file_;
  const PluginProcesses& processes_;
  const std::function<void(const CheckResult&)>& on_result_;
  const std::vector<std::string>& host_options_;
};

}  // namespace

const char* to_string(CheckStatus status) {
  constexpr const char* kNames[] = {"passed", "warned", "failed", "crashed"};
  return kNames[static_cast<size_t>(status)];
}

Status validate_plugin(const std::filesystem::path& file, const PluginProcesses& processes,
                       const std::function<void(const CheckResult&)>& on_result,
                       const std::vector<std::string>& host_options) {
  return as_result([&] {
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error)) throw Error(fmt::format("{}: no such file", file.string()));
    Validation(file, processes, on_result, host_options).run();
  });
}

}  // namespace dsat::host
