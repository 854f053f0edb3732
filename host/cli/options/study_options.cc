// Makes options of the command line from the tables of settings, and reads the given options into the settings. A
// visitor chooses the kind of an option by the type of its field.
#include "options/study_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <type_traits>

#include "dsat/base/numbers.h"
#include "dsat/base/split.h"
#include "dsat/cli/read_value.h"
#include "dsat/error.h"

namespace dsat::cli {
namespace {

using host::Setting;
using host::StudyOptions;
using std::chrono::milliseconds;
using ArgMappings = std::vector<std::pair<std::string, std::string>>;

// Visits the groups of settings that have options.
template <class Self, class Visitor>
void visit_groups(Self& options, Visitor&& visitor) {
  host::SearchTarget::visit(options, visitor);
  host::BatchBounds::visit(options, visitor);
  host::SearchSettings::visit(options, visitor);
  host::StudyLimits::visit(options, visitor);
  host::Comparison::visit(options, visitor);
  host::TrialTimeouts::visit(options, visitor);
  host::SlotOptions::visit(options, visitor);
  host::ClusterOptions::visit(options, visitor);
  host::TrialMeasurement::visit(options, visitor);
  host::TrialSetup::visit(options, visitor);
  host::PluginProcesses::visit(options, visitor);
}

// Declares the option of every setting that has one.
struct Declare {
  std::map<std::string, Option, std::less<>>& options;

  template <class Field>
  void operator()(const Setting& setting, const Field& field) const {
    if (setting.option == nullptr) return;
    Option option = option_for(setting, field);
    option.value_name = setting.value_name;
    option.default_shown = setting.fallback != nullptr ? setting.fallback : shown(setting, field);
    if (setting.other != nullptr) option.aliases.emplace_back(setting.other);
    options.emplace(setting.option, std::move(option));
  }

 private:
  template <class Number, class = std::enable_if_t<std::is_integral_v<Number>>>
  static Option option_for(const Setting& setting, Number) {
    Option option = Option::integer(setting.option, setting.help)
                        .from(setting.least, sizeof(Number) == sizeof(int) ? Option::kLargestInt : Option::kNoLimit);
    if (setting.words != nullptr) option.words = split(setting.words, '|');
    return option;
  }
  static Option option_for(const Setting& setting, bool) { return Option::toggle(setting.option, setting.help); }
  static Option option_for(const Setting& setting, double) {
    return Option::number(setting.option, setting.help).from(0);
  }
  static Option option_for(const Setting& setting, milliseconds) {
    return Option::duration(setting.option, setting.help);
  }
  static Option option_for(const Setting& setting, const std::optional<uint64_t>&) {
    return Option::size(setting.option, setting.help).from(Option::kLeastMemory);
  }
  template <class Field>
  static Option option_for(const Setting& setting, const std::optional<Field>&) {
    return option_for(setting, Field());
  }
  template <class Enum, class = std::enable_if_t<std::is_enum_v<Enum>>, class = void, class = void>
  static Option option_for(const Setting& setting, Enum) {
    return Option::choice(setting.option, split(setting.words, '|'), setting.help);
  }
  static Option option_for(const Setting& setting, const std::vector<int>&) {
    if (setting.words == nullptr) return Option::text(setting.option, setting.value_name, setting.help);
    return Option::choice(setting.option, split(setting.words, '|'), setting.help)
        .taking(Takes::words)
        .when_repeated(Again::adds);
  }
  static Option option_for(const Setting& setting, const std::vector<std::string>&) {
    return Option::text(setting.option, setting.value_name, setting.help).when_repeated(Again::adds);
  }
  static Option option_for(const Setting& setting, const ArgMappings&) {
    return Option::text(setting.option, setting.value_name, setting.help).when_repeated(Again::adds);
  }
  template <class Text, class = std::enable_if_t<!std::is_integral_v<Text> && !std::is_enum_v<Text>>, class = void>
  static Option option_for(const Setting& setting, const Text&) {
    return Option::text(setting.option, setting.value_name, setting.help);
  }

  template <class Field>
  static std::string shown(const Setting& setting, const Field& field) {
    if constexpr (std::is_same_v<Field, bool>) return "";  // a switch has no default to show
    if constexpr (std::is_integral_v<Field> && !std::is_same_v<Field, bool>) return fmt::to_string(field);
    if constexpr (std::is_same_v<Field, double>) return fmt::to_string(field);
    if constexpr (std::is_same_v<Field, milliseconds>) {
      return fmt::format("{}m", std::chrono::duration_cast<std::chrono::minutes>(field).count());
    }
    if constexpr (std::is_enum_v<Field>) return split(setting.words, '|').at(static_cast<size_t>(field));
    if constexpr (std::is_same_v<Field, std::string>) return field;
    return "";
  }
};

// "4", or "2,4": sizes to choose from.
std::vector<int> read_sizes(const std::string& option, const std::string& text) {
  constexpr int kMost = 1 << 20;
  std::vector<int> sizes;
  for (const std::string& part : split(text, ',')) {
    const std::optional<int64_t> size = parse_integer(part, 1, kMost);
    if (!size) {
      throw Error(fmt::format("--{}: '{}' is no number of at least 1 and no list of them, such as 2,4", option, text));
    }
    sizes.push_back(static_cast<int>(*size));
  }
  return sizes;
}

std::pair<std::string, std::string> read_arg_mapping(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw Error(
        fmt::format("--arg-mapping: '{}' is no KEY=FLAG: give one such as "
                    "train_micro_batch_size_per_gpu=--per_device_train_batch_size",
                    text));
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

// Sets every field whose option is given.
struct Read {
  const Values& values;

  template <class Field>
  void operator()(const Setting& setting, Field& field) const {
    if (setting.option != nullptr && values.given(setting.option)) read(setting, field);
  }

 private:
  template <class Field, class Value>
  static void assign(Field& field, const std::optional<Value>& value) {
    if (value) field = *value;
  }
  // A switch: --no-... turns something off.
  void read(const Setting& s, bool& field) const { field = std::string_view(s.option).substr(0, 3) != "no-"; }
  void read(const Setting& s, int& field) const { assign(field, values.small_integer(s.option)); }
  void read(const Setting& s, std::optional<int>& field) const { assign(field, values.small_integer(s.option)); }
  void read(const Setting& s, int64_t& field) const { assign(field, values.integer(s.option)); }
  void read(const Setting& s, std::optional<int64_t>& field) const { assign(field, values.integer(s.option)); }
  void read(const Setting& s, uint64_t& field) const { field = static_cast<uint64_t>(*values.integer(s.option)); }
  void read(const Setting& s, std::optional<uint64_t>& field) const { assign(field, values.size(s.option)); }
  void read(const Setting& s, milliseconds& field) const { assign(field, values.duration(s.option)); }
  void read(const Setting& s, std::optional<milliseconds>& field) const { assign(field, values.duration(s.option)); }
  void read(const Setting& s, double& field) const { assign(field, values.number(s.option)); }
  void read(const Setting& s, std::string& field) const { assign(field, values.text(s.option)); }
  void read(const Setting& s, std::filesystem::path& field) const { assign(field, values.text(s.option)); }
  void read(const Setting& s, std::vector<int>& field) const {
    if (s.words == nullptr) {
      field = read_sizes(s.option, values.text(s.option).value_or(""));
      return;
    }
    field.clear();
    for (const std::string& word : values.texts(s.option)) field.push_back(parse_count(word).value());
    std::sort(field.begin(), field.end());
    field.erase(std::unique(field.begin(), field.end()), field.end());
  }
  void read(const Setting& s, ArgMappings& field) const {
    for (const std::string& text : values.texts(s.option)) field.push_back(read_arg_mapping(text));
  }
  void read(const Setting& s, std::vector<std::string>& field) const { field = values.texts(s.option); }
  // Settings without an option are never read.
  template <class Field>
  void read(const Setting& s, Field& field) const {
    if constexpr (std::is_enum_v<Field>) {
      const std::vector<std::string> words = split(s.words, '|');
      field = static_cast<Field>(std::find(words.begin(), words.end(), values.text(s.option)) - words.begin());
    }
  }
};

// Reads where trials run: on this machine, in a cluster, or in a simulation.
void read_runner(const Values& values, StudyOptions& options) {
  const std::string runner = values.text("runner").value_or("");
  const std::optional<std::string> file = values.text("sim");
  if (runner != "sim") {
    if (!runner.empty()) cli_kit::read_choice("--runner", runner, {"local", "pilot", "slurm", "sim"});
    if (file) throw Error(fmt::format("--sim {} needs --runner sim: without it trials run for real", *file));
    options.runner = runner;
    return;
  }
  if (!file) throw Error("--runner sim needs --sim FILE: a cluster (JSON) or recorded trials (CSV)");
  if (values.given("run-full-experiment")) refuse_training();
  auto simulation = host::load_simulation(*file);
  if (!simulation.ok()) throw Error(simulation.status().message());
  options.simulation = std::move(simulation).value();
}

}  // namespace

Option setting_option(std::string_view name) {
  static const auto options = [] {
    std::map<std::string, Option, std::less<>> declared;
    const StudyOptions defaults;
    visit_groups(defaults, Declare{declared});
    return declared;
  }();
  const auto it = options.find(name);
  if (it == options.end()) throw Error(DSAT_INTERNAL, fmt::format("no setting has an option --{}", name));
  return it->second;
}

std::vector<std::string> setting_option_names() {
  std::vector<std::string> names;
  const StudyOptions defaults;
  visit_groups(defaults, [&](const Setting& setting, const auto&) {
    if (setting.option != nullptr) names.emplace_back(setting.option);
  });
  return names;
}

host::PluginProcesses plugin_processes(const Values& values) {
  host::PluginProcesses processes;
  host::PluginProcesses::visit(processes, Read{values});
  return processes;
}

void refuse_training() { throw Error("--run-full-experiment: a simulation has nothing to train"); }

StudyOptions study_options(const Values& values) {
  StudyOptions options;
  visit_groups(options, Read{values});
  if (const auto file = values.text("space")) options.space_file = *file;
  if (const auto file = values.text("ds-config")) options.ds_config = *file;
  if (const auto folder = values.text("output-dir")) options.output_dir = *folder;
  options.trust_folder = values.given("trust-folder");
  read_runner(values, options);
  return options;
}

host::ResumeOptions resume_options(const Values& values) {
  host::ResumeOptions options;
  options.max_trials = values.small_integer("max-trials");
  options.max_concurrent_trials = values.small_integer("max-concurrent-trials");
  options.time_budget = values.duration("time-budget");
  options.budget = values.text("budget").value_or("");
  options.plugin_timeout = values.duration("plugin-timeout");
  options.trust_folder = values.given("trust-folder");
  options.accept_changed_plugins = values.given("accept-changed-plugins");
  return options;
}

}  // namespace dsat::cli
