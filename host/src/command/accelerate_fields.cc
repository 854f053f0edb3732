// A field's value is that of the command's option, else of the settings, else accelerate's default.
#include "command/accelerate_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "dsat/base/numbers.h"
#include "dsat/config/json.h"

namespace dsat::host {

namespace {

constexpr const char* kFileKey = "deepspeed_config_file";
constexpr const char* kInitFlag = "zero3_init_flag";
// The fields that accelerate refuses beside a file.
constexpr std::array kFields{"gradient_accumulation_steps", "gradient_clipping",     "zero_stage",
                             "offload_optimizer_device",    "offload_param_device",  "offload_param_nvme_path",
                             "offload_optimizer_nvme_path", "zero3_save_16bit_model"};

std::string in_section(const std::string& key) { return "deepspeed_config." + key; }

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// The options of accelerate that `trl` and the like keep for their script.
bool is_of_script(const LauncherUse& launcher, std::string_view field) {
  return launcher.mixed && field == "gradient_accumulation_steps";
}

class Fields {
 public:
  Fields(const Argv& argv, const LauncherUse& launcher, const AccelerateSettings& settings)
      : argv_(argv), launcher_(launcher), settings_(settings) {}

  // Returns the value as a text in lower case; empty: it is not given, or "none".
  std::string text(const std::string& field) const {
    std::string given = of_option(field);
    const auto own = settings_.section.find(field);
    if (given.empty() && own != settings_.section.end() && !own->is_null()) {
      given = own->is_string() ? own->get<std::string>() : own->dump();
    }
    if (field.find("path") == std::string::npos) given = lower(given);
    return given == "none" ? "" : given;
  }

  int64_t stage() const {
    const std::string given = text("zero_stage");
    const auto stage = parse_integer(given.empty() ? "2" : given, 0, 3);
    if (!stage) refuse("zero_stage", "no ZeRO stage", "write 0, 1, 2 or 3");
    return *stage;
  }

  // accelerate leaves a value of another form to the script.
  Json accumulation() const {
    constexpr int64_t kMost = int64_t{1} << 40;
    const auto steps = parse_integer(text("gradient_accumulation_steps"), 1, kMost);
    return steps ? Json(*steps) : Json("auto");
  }

  Json clipping() const {
    const std::string given = text("gradient_clipping");
    if (given.empty() || given == "auto") return "auto";
    const auto value = parse_number(given);
    if (!value) refuse("gradient_clipping", "no number", "write one, or leave it out");
    return *value;
  }

  // The section of the optimizer's or the parameters' offload; null: none.
  Json offload(const std::string& what) const {
    const std::string field = fmt::format("offload_{}_device", what), device = text(field);
    if (device.empty()) return nullptr;
    if (device != "cpu" && device != "nvme") refuse(field, "no device", "write none, cpu or nvme");
    Json section{{"device", device}};
    const std::string path_field = fmt::format("offload_{}_nvme_path", what), path = text(path_field);
    if (device == "nvme" && path.empty()) refuse(path_field, "no folder", "name the one to offload to");
    if (device == "nvme") section["nvme_path"] = path;
    return section;
  }

 private:
  std::string of_option(const std::string& field) const {
    if (is_of_script(launcher_, field)) return "";
    std::string dashes = field;
    std::replace(dashes.begin(), dashes.end(), '_', '-');
    return launcher_value(argv_, launcher_, {"--" + field, "--" + dashes}).value_or("");
  }

  [[noreturn]] void refuse(const std::string& field, const char* what, const char* advice) const {
    const bool is_option = !of_option(field).empty();
    const std::string where = is_option ? "--" + field : place_in(settings_, in_section(field)) + ": " + field;
    throw Error(fmt::format("{} '{}' is {}: {}", where, text(field), what, advice));
  }

  const Argv& argv_;
  const LauncherUse& launcher_;
  const AccelerateSettings& settings_;
};

// accelerate adds a section for the precision that is on; it trains in bf16 below fp8.
void add_precision(const std::string& precision, Json& config) {
  if (precision == "fp16") config["fp16"] = {{"enabled", true}, {"auto_cast", true}};
  if (precision == "bf16" || precision == "fp8") config["bf16"] = {{"enabled", true}};
}

bool has_config_file_option(const Argv& argv, const LauncherUse& launcher) {
  return !launcher_flags(argv, launcher, {"--deepspeed_config_file", "--deepspeed-config-file"}).empty();
}

Argv without_option(const Argv& argv, const LauncherUse& launcher, const std::string& field) {
  std::string dashes = field;
  std::replace(dashes.begin(), dashes.end(), '_', '-');
  LauncherUse now = find_launcher(argv);  // an earlier option may have been left out
  if (now.kind == Launcher::none) now = launcher;
  const std::vector<size_t> dropped = launcher_tokens(argv, now, {"--" + field, "--" + dashes});
  Argv result;
  for (size_t i = 0; i < argv.size(); ++i) {
    if (std::find(dropped.begin(), dropped.end(), i) == dropped.end()) result.push_back(argv[i]);
  }
  return result;
}

// zero.Init is on at stage 3 unless the user has turned it off there; a field of another stage says nothing of stage 3.
bool keeps_init_flag(const AccelerateSettings& settings) {
  const auto stage = settings.section.find("zero_stage");
  return stage != settings.section.end() && (*stage == 3 || *stage == "3");
}

}  // namespace

bool starts_deepspeed(const Argv& argv, const LauncherUse& launcher, const AccelerateSettings& settings) {
  if (launcher.kind != Launcher::accelerate || launcher_switch(argv, launcher, "--cpu")) return false;
  if (launcher_switch(argv, launcher, "--use_deepspeed") || launcher_switch(argv, launcher, "--use-deepspeed")) {
    return true;
  }
  for (const char* other : {"--multi_gpu", "--tpu", "--tpu_use_cluster", "--use_fsdp", "--use_megatron_lm"}) {
    if (launcher_switch(argv, launcher, other)) return false;
  }
  if (settings.file.empty()) return false;
  return settings.distributed_type.empty() || settings.distributed_type == "DEEPSPEED";
}

std::string why_no_deepspeed(const AccelerateSettings& settings) {
  if (settings.distributed_type.empty() || settings.distributed_type == "DEEPSPEED") {
    return "accelerate starts no DeepSpeed here: add --use_deepspeed before the script";
  }
  return fmt::format(
      "{}: distributed_type {}: accelerate starts no DeepSpeed there: add --use_deepspeed --zero_stage 2 before the "
      "script, or make it DEEPSPEED with deepspeed_config below it",
      place_in(settings, "distributed_type"), settings.distributed_type);
}

void refuse_fields_beside_file(const AccelerateSettings& settings) {
  for (const char* field : kFields) {
    if (!settings.section.contains(field)) continue;
    throw Error(fmt::format(
        "{}: {} beside a configuration file, which accelerate refuses: leave the field out, and write its value into "
        "the file",
        place_in(settings, in_section(field)), field));
  }
}

std::string precision_of(const Argv& argv, const LauncherUse& launcher, const AccelerateSettings& settings) {
  const auto option = launcher_value(argv, launcher, {"--mixed_precision", "--mixed-precision"});
  const std::string precision = lower(option.value_or(settings.mixed_precision));
  return precision == "no" || precision == "false" ? "" : precision;
}

std::optional<Json> config_of_fields(const Argv& argv, const LauncherUse& launcher,
                                     const AccelerateSettings& settings) {
  if (!starts_deepspeed(argv, launcher, settings)) return std::nullopt;
  if (has_config_file_option(argv, launcher) || !settings.deepspeed_config_file.empty()) {
    refuse_fields_beside_file(settings);
    return std::nullopt;
  }
  const Fields fields(argv, launcher, settings);
  Json config{{"train_batch_size", "auto"},
              {"train_micro_batch_size_per_gpu", "auto"},
              {"gradient_accumulation_steps", fields.accumulation()},
              {"gradient_clipping", fields.clipping()},
              {"zero_optimization", {{"stage", fields.stage()}}}};
  for (const char* what : {"optimizer", "param"}) {
    if (Json offload = fields.offload(what); !offload.is_null()) {
      config["zero_optimization"][fmt::format("offload_{}", what)] = std::move(offload);
    }
  }
  if (fields.text("zero3_save_16bit_model") == "true") {
    config["zero_optimization"]["stage3_gather_16bit_weights_on_model_save"] = true;
  }
  add_precision(precision_of(argv, launcher, settings), config);
  return config;
}

SettingsChanges changes_for_file(const AccelerateSettings& settings, const std::filesystem::path& config_file,
                                 AccelerateConfig kind) {
  SettingsChanges changes;
  const bool is_built = kind == AccelerateConfig::fields;
  if (settings.section.contains(kFileKey) || (is_built && !settings.section.empty())) {
    changes.emplace_back(in_section(kFileKey), config_file.string());
  }
  if (is_built) {
    for (const char* field : kFields) changes.emplace_back(in_section(field), nullptr);
    if (!keeps_init_flag(settings)) changes.emplace_back(in_section(kInitFlag), nullptr);
  }
  if (kind != AccelerateConfig::none) changes.emplace_back("mixed_precision", nullptr);
  return changes;
}

Argv with_config_file(const Argv& argv, const LauncherUse& launcher, const AccelerateSettings& settings,
                      const std::filesystem::path& config_file, AccelerateConfig kind) {
  Argv result = argv, inserted;
  if (kind == AccelerateConfig::fields) {
    for (const std::string field : kFields) {
      if (!is_of_script(launcher, field)) result = without_option(result, launcher, field);
    }
    if (!keeps_init_flag(settings)) result = without_option(result, launcher, kInitFlag);
    if (settings.section.empty()) inserted.insert(inserted.end(), {"--deepspeed_config_file", config_file.string()});
  }
  const bool is_option = launcher_value(argv, launcher, {"--mixed_precision", "--mixed-precision"}).has_value();
  const std::string precision = precision_of(argv, launcher, settings);
  if (kind != AccelerateConfig::none && !is_option && !precision.empty()) {
    inserted.insert(inserted.end(), {"--mixed_precision", precision});
  }
  result.insert(result.begin() + static_cast<std::ptrdiff_t>(launcher.begin), inserted.begin(), inserted.end());
  return result;
}

}  // namespace dsat::host
