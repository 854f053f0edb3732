// Reads each key with the type and range that DeepSpeed documents; a wrong value is refused with the key's name. A key
// with white space around it is read, with a notice.
#include "deepspeed/autotuning_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace dsat::cli {
namespace {

std::string trim(const std::string& text) {
  const char* const kBlanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// The members of one object, by key without the white space around it.
class SectionReader {
 public:
  SectionReader(const Json& object, std::string where, std::vector<std::string>& notices) : where_(std::move(where)) {
    for (const auto& [key, value] : object.items()) {
      const std::string name = trim(key);
      if (name != key) {
        notices.push_back(
            fmt::format("the key '{}.{}' has stray white space around it: read as '{}'", where_, key, name));
      }
      if (!value.is_null()) members_[name] = value;
    }
  }

  const Json* find(const std::string& name) const {
    const auto it = members_.find(name);
    return it == members_.end() ? nullptr : &*it;
  }
  [[noreturn]] void refuse(const std::string& name, const std::string& wanted) const {
    throw Error(fmt::format("{}.{} is {}: it must be {}", where_, name, members_.at(name).dump(), wanted));
  }

  std::optional<bool> flag(const std::string& name) const {
    const Json* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_boolean()) refuse(name, "true or false");
    return value->get<bool>();
  }
  std::optional<std::string> text(const std::string& name) const {
    const Json* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string() || trim(*value).empty()) refuse(name, "a text");
    return trim(*value);
  }
  std::optional<int64_t> integer(const std::string& name, int64_t least) const {
    const Json* value = find(name);
    if (value == nullptr) return std::nullopt;
    const auto number = whole(*value);
    if (!number || *number < least) refuse(name, fmt::format("a whole number from {} on", least));
    return number;
  }
  // A number or a list of them.
  std::vector<int64_t> integers(const std::string& name) const {
    const Json* value = find(name);
    if (value == nullptr) return {};
    std::vector<int64_t> numbers;
    for (const Json& element : value->is_array() ? *value : Json::array({*value})) {
      const auto number = whole(element);
      if (!number || *number < 1) refuse(name, "a whole number from 1 on, or a list of such");
      if (std::find(numbers.begin(), numbers.end(), *number) == numbers.end()) numbers.push_back(*number);
    }
    if (numbers.empty()) refuse(name, "a whole number from 1 on, or a list of such");
    return numbers;
  }
  const Json& members() const { return members_; }

 private:
  // DeepSpeed reads 5e2 as 500, too.
  static std::optional<int64_t> whole(const Json& value) {
    constexpr double kLargest = 9e15;
    if (!value.is_number()) return std::nullopt;
    const double number = value.get<double>();
    if (std::floor(number) != number || std::abs(number) > kLargest) return std::nullopt;
    return static_cast<int64_t>(number);
  }

  std::string where_;
  Json members_ = Json::object();
};

// Object members of the section; nullptr: absent.
const Json* object_at(const SectionReader& section, const std::string& name, const std::string& wanted) {
  const Json* value = section.find(name);
  if (value != nullptr && !value->is_object()) section.refuse(name, wanted);
  return value;
}

void read_arg_mappings(const SectionReader& section, const std::string& where, AutotuningSection& out) {
  const char* const kWanted = "an object such as {\"train_micro_batch_size_per_gpu\": \"--batch-size\"}";
  const Json* mappings = object_at(section, "arg_mappings", kWanted);
  if (mappings == nullptr) return;
  const SectionReader reader(*mappings, where + ".arg_mappings", out.notices);
  for (const auto& item : reader.members().items()) {
    const std::string flag = reader.text(item.key()).value();
    const bool is_name = flag.find_first_not_of('-') != std::string::npos && flag.find_first_of(" \t=") == flag.npos;
    if (!is_name) reader.refuse(item.key(), "a flag of the script, such as --batch-size");
    out.arg_mappings.emplace_back(item.key(), flag[0] == '-' ? flag : "--" + flag);
  }
}

void read_model_info(const SectionReader& section, const std::string& where, AutotuningSection& out) {
  const Json* info = object_at(section, "model_info", "an object such as {\"num_params\": 1000000000}");
  if (info == nullptr) return;
  const SectionReader reader(*info, where + ".model_info", out.notices);
  out.gives_model_size = reader.integer("num_params", 1).has_value() && !reader.flag("profile").value_or(false);
}

void read_tuner(const SectionReader& section, AutotuningSection& out) {
  out.tuner_type = section.text("tuner_type");
  if (out.tuner_type && *out.tuner_type != "gridsearch" && *out.tuner_type != "random" &&
      *out.tuner_type != "model_based") {
    section.refuse("tuner_type", "gridsearch, random or model_based");
  }
  out.tuner_early_stopping = section.integer("tuner_early_stopping", 0);
  out.tuner_num_trials = section.integer("tuner_num_trials", 1);
  out.num_tuning_micro_batch_sizes = section.integer("num_tuning_micro_batch_sizes", 1);
}

void read_bounds(const SectionReader& section, const std::string& where, AutotuningSection& out) {
  section.integer("mp_size", 1);  // only checked here; the configuration's reader uses it
  out.max_train_batch_size = section.integer("max_train_batch_size", 1);
  out.min_micro_batch = section.integer("min_train_micro_batch_size_per_gpu", 1);
  out.max_micro_batch = section.integer("max_train_micro_batch_size_per_gpu", 1);
  if (out.min_micro_batch && out.max_micro_batch && *out.min_micro_batch > *out.max_micro_batch) {
    throw Error(
        fmt::format("{}: min_train_micro_batch_size_per_gpu {} is above max_train_micro_batch_size_per_gpu {}: "
                    "nothing is left to try",
                    where, *out.min_micro_batch, *out.max_micro_batch));
  }
  const auto either = [&](const char* name, const char* older) {
    const auto value = section.integer(name, 0);
    return value ? value : section.integer(older, 0);
  };
  out.start_profile_step = either("start_profile_step", "start_step");
  out.end_profile_step = either("end_profile_step", "end_step");
}

// Notes the keys that DeepSpeed knows and dsat ignores.
void note_keys_without_effect(const SectionReader& section, AutotuningSection& out) {
  const auto note = [&out](const SectionReader& object, const std::string& key, const std::string& shown) {
    if (object.find(key) != nullptr) out.without_effect.push_back(shown);
  };
  if (const Json* least = section.find("min_train_batch_size"); least != nullptr && *least != 1) {
    out.without_effect.emplace_back("min_train_batch_size");
  }
  for (const char* path : {"metric_path", "model_info_path"}) note(section, path, path);
  if (const Json* info = section.find("model_info"); info != nullptr && info->is_object()) {
    std::vector<std::string> ignored;
    const SectionReader reader(*info, "model_info", ignored);
    for (const char* key : {"hidden_size", "num_layers"}) note(reader, key, fmt::format("model_info.{}", key));
  }
}

}  // namespace

AutotuningSection read_autotuning_section(const Json& config, const std::string& where) {
  AutotuningSection out;
  const std::string name = where + ": autotuning";
  const auto it = config.find("autotuning");
  if (it == config.end() || it->is_null()) return out;
  if (!it->is_object()) throw Error(fmt::format("{} is {}: it must be an object", name, it->dump()));
  out.present = true;
  const SectionReader section(*it, name, out.notices);
  out.enabled = section.flag("enabled");
  out.fast = section.flag("fast");
  out.overwrite = section.flag("overwrite");
  out.metric = section.text("metric");
  out.results_dir = section.text("results_dir");
  out.exps_dir = section.text("exps_dir");
  out.num_gpus = section.integers("num_gpus");
  out.num_nodes = section.integers("num_nodes");
  read_tuner(section, out);
  read_bounds(section, name, out);
  read_arg_mappings(section, name, out);
  read_model_info(section, name, out);
  note_keys_without_effect(section, out);
  return out;
}

}  // namespace dsat::cli
