// Turns the object of options into the words of dsat-host's command line, so that every option has one meaning, and
// runs the study as dsat-host does, without a terminal.
#include "dsat/dsat.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands/host_options.h"
#include "dsat/config/json.h"
#include "dsat/error.h"
#include "dsat/host/plugins.h"
#include "dsat/host/study.h"
#include "events/event_lines.h"
#include "options/other_searchers.h"
#include "options/plugin_options.h"
#include "options/preview.h"
#include "options/study_options.h"
#include "terminal/exit_status.h"
#include "terminal/print_result.h"

struct dsat_tuning {
  std::unique_ptr<dsat::host::Study> study;
  std::string dir, result;
  bool has_run = false;
};

namespace dsat::cli {
namespace {

// Options of the program alone: its output, its terminal, DeepSpeed's form of it.
constexpr const char* kOptionsOfTheProgram[] = {"json", "events", "quiet", "verbose", "help", "version", "autotuning",
                                                "run-full-experiment"};

struct Request {
  Tokens options, command;
};

std::string text_of_value(const std::string& name, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return config::text_of(value);
  throw Error(fmt::format("the option {} takes texts, numbers and true, or an array of them", name));
}

void add_words(const std::string& name, const Json& value, Tokens& words) {
  if (value.is_null() || value == false) return;
  words.push_back(value == true ? "--" + name : fmt::format("--{}={}", name, text_of_value(name, value)));
}

Request read_options(const char* options_json) {
  Request request;
  if (options_json == nullptr) return request;
  const Json options = config::parse(options_json, "the options");
  if (!options.is_object()) throw Error("the options are no JSON object");
  for (const auto& [name, value] : options.items()) {
    for (const char* of_program : kOptionsOfTheProgram) {
      if (name == of_program) throw Error(fmt::format("the option {} is for dsat-host, not for the library", name));
    }
    if (name == "command") {
      if (!value.is_array()) throw Error("command is an array of words: [\"deepspeed\", \"train.py\"]");
      for (const Json& word : value) request.command.push_back(text_of_value(name, word));
    } else if (value.is_array()) {
      for (const Json& one : value) add_words(name, one, request.options);
    } else {
      add_words(name, value, request.options);
    }
  }
  return request;
}

template <class T>
T value_or_throw(host::Result<T> result) {
  if (!result.ok()) throw Error(result.status().message());
  return std::move(result.value());
}

Values values_of(const OptionSet& set, const Tokens& words) {
  const Split parts = split(set, words, Grammar::operands);
  if (!parts.rest.empty()) throw Error(fmt::format("'{}' is no option", parts.rest.front()));
  return Values(set, parts.options);
}

std::unique_ptr<host::Study> create(Request request) {
  OptionSet set = tune_options();
  const Preview wanted = preview(set, request.options, Grammar::operands);
  const std::string searcher_name = wanted.searcher.value_or(kDefaultSearcher);
  const std::string profiler_name = wanted.profiler.value_or(host::StudyOptions().profiler.plugin);
  const host::PluginProcesses processes = plugin_processes(Values(set, wanted.plugin_processes));
  const auto searcher = value_or_throw(find_strategy(searcher_name, host::PluginKind::searcher, processes));
  const auto profiler = value_or_throw(find_strategy(profiler_name, host::PluginKind::profiler, processes));
  add_plugin_options(set, searcher, profiler);
  const Values values = read_or_explain(set, processes, [&] { return values_of(set, request.options); });
  host::StudyOptions options = study_options(values);
  if (request.command.empty() && !options.simulation) throw Error("there is no command to tune: give it as `command`");
  options.command = std::move(request.command);
  options.searcher = {searcher_name, given_plugin_options(set, values, searcher)};
  options.profiler = {profiler_name, given_plugin_options(set, values, profiler)};
  return value_or_throw(host::Study::create(std::move(options)));
}

std::unique_ptr<host::Study> resume(const char* dir, Request request) {
  if (!request.command.empty()) throw Error("a resumed study keeps its command: leave out `command`");
  OptionSet set = resume_options();
  const Preview wanted = preview(set, request.options, Grammar::operands);
  std::optional<host::PluginInfo> searcher;
  const host::PluginProcesses processes = plugin_processes(Values(set, wanted.plugin_processes));
  if (wanted.searcher) {
    searcher = value_or_throw(find_strategy(*wanted.searcher, host::PluginKind::searcher, processes));
    add_plugin_options(set, *searcher, host::PluginInfo());
  }
  const Values values = read_or_explain(set, processes, [&] { return values_of(set, request.options); });
  host::ResumeOptions options = resume_options(values);
  if (searcher) {
    options.searcher = host::StrategyChoice{*wanted.searcher, given_plugin_options(set, values, *searcher)};
  }
  return value_or_throw(host::Study::resume(dir, std::move(options)));
}

// A handle for the study that `make` returns, or nullptr and the text of what it throws.
template <class Make>
dsat_tuning* handle_of(const Make& make, char** error) noexcept {
  std::string message;
  try {
    auto tuning = std::make_unique<dsat_tuning>();
    tuning->study = make();
    tuning->dir = tuning->study->dir().string();
    return tuning.release();
  } catch (const std::exception& thrown) {
    message = thrown.what();
  } catch (...) {
    message = "an unknown failure";
  }
  if (error != nullptr) *error = strdup(message.c_str());
  return nullptr;
}

}  // namespace
}  // namespace dsat::cli

extern "C" {

unsigned dsat_api_version(void) { return DSAT_API_VERSION; }

const char* dsat_version(void) { return DSAT_VERSION; }

dsat_tuning* dsat_tuning_create(const char* options_json, char** error) {
  using namespace dsat::cli;
  return handle_of([&] { return create(read_options(options_json)); }, error);
}

dsat_tuning* dsat_tuning_resume(const char* dir, const char* options_json, char** error) {
  using namespace dsat::cli;
  return handle_of(
      [&] {
        if (dir == nullptr) throw dsat::Error("there is no run directory: `dir` is NULL");
        return resume(dir, read_options(options_json));
      },
      error);
}

int dsat_tuning_run(dsat_tuning* tuning, dsat_event_function on_event, void* data) {
  using namespace dsat;
  if (tuning == nullptr || std::exchange(tuning->has_run, true)) return DSAT_TUNING_WRONG_USE;
  try {
    cli::EventLines events([&](const std::string& line) {
      if (on_event != nullptr) on_event(data, line.c_str());
    });
    events.start(*tuning->study);
    const host::StudyResult result = tuning->study->run(events);
    const Json json = cli::result_json(result);
    events.result(json);
    tuning->result = config::text_of(json);
    return cli::exit_status(result.status);
  } catch (...) {
    return DSAT_TUNING_FAILED;
  }
}

void dsat_tuning_stop(dsat_tuning* tuning) {
  if (tuning != nullptr) tuning->study->request_stop();
}

const char* dsat_tuning_dir(const dsat_tuning* tuning) { return tuning == nullptr ? nullptr : tuning->dir.c_str(); }

const char* dsat_tuning_result(const dsat_tuning* tuning) {
  return tuning == nullptr || tuning->result.empty() ? nullptr : tuning->result.c_str();
}

void dsat_tuning_destroy(dsat_tuning* tuning) { delete tuning; }

void dsat_text_free(char* text) { std::free(text); }

}  // extern "C"
