// dsat-host validate FILE: checks a plugin, each check in a process of its own, and prints a line for each check.
#include "dsat/host/validate.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <vector>

#include "commands/commands.h"
#include "commands/host_options.h"
#include "commands/subcommand.h"
#include "dsat/error.h"
#include "dsat/host/plugins.h"
#include "options/study_options.h"
#include "terminal/exit_status.h"

namespace dsat::cli {
namespace {

constexpr const char* kUsageText =
    "Usage: dsat-host validate FILE [options]\n"
    "\n"
    "Checks a plugin: its exported and missing symbols, life cycle, determinism, state, and leaks.\n"
    "Status 0: no check failed; 1: a check failed; 2: there is no such plugin.\n"
    "\n";

constexpr int kSomethingFailed = 1;

std::string only_file(const Tokens& operands) {
  if (operands.size() == 1) return operands.front();
  throw Error(operands.empty() ? std::string("validate needs a plugin: type dsat-host validate lib....so")
                               : fmt::format("validate takes one plugin: '{}' is one too many", operands[1]));
}

// Other options take the name of a plugin, but validate takes a file.
void refuse_name_of_plugin(const std::string& file) {
  std::error_code error;
  if (file.find('/') != std::string::npos || std::filesystem::exists(file, error)) return;
  const auto plugin = host::find_plugin(file);
  if (!plugin.ok()) return;
  throw Error(fmt::format("{}: no such file; the plugin of that name is {}", file, plugin->string()));
}

// An option of a plugin that has one of these names must be typed as --searcher.NAME.
std::vector<std::string> names_of_own_options() {
  const OptionSet own = tune_options();
  std::vector<std::string> names;
  for (const Option& option : own.options()) {
    names.push_back(option.name);
    for (const std::string& spelling : option.aliases) {
      if (spelling.rfind("--", 0) == 0) names.push_back(spelling.substr(2));
    }
  }
  return names;
}

Json as_json(const host::CheckResult& result) {
  return {{"check", result.check},
          {"strategy", result.strategy.empty() ? Json() : Json(result.strategy)},
          {"status", to_string(result.status)},
          {"reason", result.reason}};
}

std::string line_of(const host::CheckResult& result) {
  const std::string what =
      result.strategy.empty() ? result.check : fmt::format("{} of {}", result.check, result.strategy);
  return one_line(fmt::format("{:<8} {:<32} {}", to_string(result.status), what, result.reason));
}

}  // namespace

int validate(const Tokens& arguments, Console& console) {
  const auto request = read_request(validate_options(), arguments, kUsageText, console);
  if (!request) return kBestFound;
  const std::string file = only_file(request->operands);
  refuse_name_of_plugin(file);
  const host::PluginProcesses processes = plugin_processes(request->values);
  Json checks = Json::array();
  std::map<host::CheckStatus, int> counts;
  const auto report = [&](const host::CheckResult& result) {
    ++counts[result.status];
    checks.push_back(as_json(result));
    if (!console.json()) console.line(line_of(result));
  };
  const host::Status done = host::validate_plugin(file, processes, report, names_of_own_options());
  if (!done.ok()) return console.error(done.message()), exit_status(done);
  Json summary = Json::object();
  std::string text;
  for (const auto status :
       {host::CheckStatus::passed, host::CheckStatus::warned, host::CheckStatus::failed, host::CheckStatus::crashed}) {
    summary[to_string(status)] = counts[status];
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counts[status], to_string(status));
  }
  if (console.json()) {
    console.print_json({{"file", file}, {"checks", std::move(checks)}, {"summary", std::move(summary)}});
  } else {
    console.line(text);
  }
  return counts[host::CheckStatus::failed] + counts[host::CheckStatus::crashed] > 0 ? kSomethingFailed : kBestFound;
}

}  // namespace dsat::cli
