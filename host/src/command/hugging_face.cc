// Recognises the Trainer by its options and rewrites its two batch flags, --per_device_train_batch_size and
// --gradient_accumulation_steps.
#include "command/hugging_face.h"

#include <algorithm>

#include "dsat/base/numbers.h"
#include "dsat/config/json.h"

namespace dsat::host {

namespace {

constexpr const char* kMicroBatchFlag = "--per_device_train_batch_size";
constexpr const char* kAccumulationFlag = "--gradient_accumulation_steps";

std::vector<FlagUse> micro_batch_flags(const Argv& argv) { return find_flag_in_any_spelling(argv, kMicroBatchFlag); }
std::vector<FlagUse> accumulation_flags(const Argv& argv) { return find_flag_in_any_spelling(argv, kAccumulationFlag); }

bool is_of_script(const std::vector<FlagUse>& uses, size_t script) {
  return std::any_of(uses.begin(), uses.end(), [script](const FlagUse& use) { return use.flag >= script; });
}

// Of at least 1; the last use counts.
std::optional<int64_t> flag_number(const Argv& argv, const std::vector<FlagUse>& uses) {
  if (uses.empty() || uses.back().value >= argv.size()) return std::nullopt;
  constexpr int64_t kMost = int64_t{1} << 40;
  return parse_integer(uses.back().read(argv), 1, kMost);
}

void write_all(Argv& argv, const std::vector<FlagUse>& uses, const std::optional<std::string>& value) {
  for (const FlagUse& use : uses) {
    if (value) use.write(argv, *value);
  }
}

}  // namespace

std::optional<std::string> as_argument(const Json* value) {
  if (value == nullptr || value->is_null() || (value->is_string() && *value == "auto")) return std::nullopt;
  return value->is_string() ? value->get<std::string>() : value->dump();
}

bool is_batch_flag(const std::string& flag) {
  const std::string plain = with_underscores(flag);
  return plain == kMicroBatchFlag || plain == kAccumulationFlag;
}

std::vector<FlagUse> batch_flags(const Argv& argv) {
  std::vector<FlagUse> uses = micro_batch_flags(argv);
  for (const FlagUse& use : accumulation_flags(argv)) uses.push_back(use);
  return uses;
}

Trainer find_trainer(const Argv& argv, size_t script, bool deepspeed_takes_file) {
  const bool has_batch_flags = is_of_script(batch_flags(argv), script);
  if (has_batch_flags) return deepspeed_takes_file ? Trainer::hugging_face : Trainer::batch_flags;
  if (!deepspeed_takes_file) return Trainer::other;
  for (size_t i = script; i < argv.size(); ++i) {
    const std::string flag = with_underscores(argv[i].substr(0, argv[i].find('=')));
    for (const char* only_theirs :
         {"--output_dir", "--do_train", "--model_name_or_path", "--per_device_eval_batch_size",
          "--overwrite_output_dir", "--num_train_epochs", "--evaluation_strategy", "--eval_strategy"}) {
      if (flag == only_theirs) return Trainer::hugging_face;
    }
  }
  return Trainer::other;
}

config::GivenBatchSizes with_batch_flags(const Argv& argv, config::GivenBatchSizes given) {
  if (given.train_batch) return given;
  if (!given.micro_batch) given.micro_batch = flag_number(argv, micro_batch_flags(argv));
  if (!given.accumulation) given.accumulation = flag_number(argv, accumulation_flags(argv));
  return given;
}

void follow_configuration(Argv& argv, size_t script, Trainer trainer, const Json& config) {
  if (trainer == Trainer::other) return;
  const auto micro_batch = as_argument(config::find(config, config::kMicroBatchKey));
  const auto accumulation = as_argument(config::find(config, config::kAccumulationKey));
  const auto micro_uses = micro_batch_flags(argv), accumulation_uses = accumulation_flags(argv);
  write_all(argv, micro_uses, micro_batch);
  write_all(argv, accumulation_uses, accumulation);
  const bool has_micro_batch = is_of_script(micro_uses, script);
  const bool complete = trainer == Trainer::hugging_face;
  if (!has_micro_batch && complete && micro_batch) argv.insert(argv.end(), {kMicroBatchFlag, *micro_batch});
  if (!is_of_script(accumulation_uses, script) && (complete || has_micro_batch) && accumulation &&
      *accumulation != "1") {
    argv.insert(argv.end(), {kAccumulationFlag, *accumulation});
  }
}

}  // namespace dsat::host
