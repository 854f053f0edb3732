#include "dsat/trainer/world_options.h"

#include <cstdlib>
#include <functional>
#include <map>
#include <utility>

#include "base/option_values.h"
#include "dsat/error.h"

namespace dsat::trainer {
namespace {

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

DeviceChoice parse_device(const std::string& name, const std::string& text) {
  if (text == "auto") return DeviceChoice::automatic;
  if (text == "cpu") return DeviceChoice::cpu;
  if (text == "cuda") return DeviceChoice::cuda;
  throw Error(name + " \"" + text + "\": expected auto, cpu or cuda");
}

// nullptr: not set.
const char* environment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

class Parser {
 public:
  explicit Parser(const std::vector<std::string>& args) : args_(args) {
    on_["--ranks"] = [this](const std::string& v) { options_.ranks = parse_integer("--ranks", v, 1, 1024); };
    on_["--pipeline-stages"] = [this](const std::string& v) {
      options_.pipeline_stages = parse_integer("--pipeline-stages", v, 1, 1024);
    };
    on_["--seed"] = [this](const std::string& v) {
      options_.seed = static_cast<uint64_t>(parse_integer("--seed", v, 0, INT64_MAX));
    };
    on_["--device"] = [this](const std::string& v) {
      options_.device = parse_device("--device", v);
      has_device_ = true;
    };
    on_["--device-memory"] = [this](const std::string& v) {
      options_.device_memory = parse_memory("--device-memory", v);
    };
    on_["--deepspeed_config"] = on_["--deepspeed-config"] = [this](const std::string& v) { set_config(v); };
    // DeepSpeed's launcher adds it; the environment's RANK says the same.
    on_["--local_rank"] =
        on_["--local-rank"] = [](const std::string& v) { parse_integer("--local_rank", v, -1, 1024); };
  }

  WorldOptions run() {
    for (at_ = 0; at_ < args_.size(); ++at_) take(args_[at_]);
    const char* const device = environment("DSAT_DEVICE");
    if (!has_device_ && device != nullptr) options_.device = parse_device("DSAT_DEVICE", device);
    const char* const memory = environment("DSAT_DEVICE_MEMORY");
    if (!options_.device_memory && memory != nullptr) {
      options_.device_memory = parse_memory("DSAT_DEVICE_MEMORY", memory);
    }
    return std::move(options_);
  }

 private:
  void set_config(const std::string& text) {
    if (!options_.deepspeed_config.empty()) throw Error("--deepspeed_config is given twice; give one configuration");
    if (text.empty()) throw Error("--deepspeed_config is empty; name a file");
    options_.deepspeed_config = text;
  }

  void take(const std::string& arg) {
    const size_t equals = arg.find('=');
    const std::string name = arg.substr(0, equals);
    const bool has_next = at_ + 1 < args_.size();
    if (name == "--deepspeed") {
      // Bare it is DeepSpeed's switch; with a file it is the configuration, as Hugging Face writes it.
      if (equals != std::string::npos) return set_config(arg.substr(equals + 1));
      if (!has_next || !ends_with(args_[at_ + 1], ".json")) return;
      return set_config(args_[++at_]);
    }
    if (arg == "--fp16-as-bf16") {
      options_.fp16_as_bf16 = true;
      return;
    }
    const auto found = on_.find(name);
    if (found == on_.end()) return options_.arguments.push_back(arg);
    if (equals != std::string::npos) return found->second(arg.substr(equals + 1));
    if (!has_next) throw Error(name + " needs a value");
    found->second(args_[++at_]);
  }

  const std::vector<std::string>& args_;
  size_t at_ = 0;
  WorldOptions options_;
  bool has_device_ = false;
  std::map<std::string, std::function<void(const std::string&)>> on_;
};

}  // namespace

WorldOptions parse_world_options(const std::vector<std::string>& args) { return Parser(args).run(); }

}  // namespace dsat::trainer
