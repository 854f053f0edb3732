// dsat-host estimate: the memory that a model needs at each ZeRO stage, from the cost model alone. The answer of the
// cost model is the JSON that --json prints; the table is made from it.
#include "dsat/cost/estimate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "commands/commands.h"
#include "commands/host_options.h"
#include "commands/subcommand.h"
#include "dsat/base/table.h"
#include "dsat/base/units.h"
#include "terminal/exit_status.h"

namespace dsat::cli {
namespace {

constexpr const char* kUsageText =
    "Usage: dsat-host estimate --num-params N --world-size N [options]\n"
    "\n"
    "Estimates the memory that a model needs on each device, by ZeRO stage, without a trial.\n"
    "\n";

constexpr const char* kShape[] = {"layers", "hidden", "heads", "seq"};

std::optional<cost::TransformerShape> transformer_of(const Values& values) {
  std::vector<std::string> missing;
  bool any = values.given("flash-attention") || values.given("checkpointing");
  for (const char* name : kShape) {
    if (values.given(name)) {
      any = true;
    } else {
      missing.push_back(fmt::format("--{}", name));
    }
  }
  if (!any) return std::nullopt;
  if (!missing.empty()) {
    throw Error(fmt::format("the transformer's shape is incomplete: give {} too", fmt::join(missing, ", ")));
  }
  cost::TransformerShape shape;
  shape.layers = static_cast<double>(*values.integer("layers"));
  shape.hidden = static_cast<double>(*values.integer("hidden"));
  shape.heads = static_cast<double>(*values.integer("heads"));
  if (std::fmod(shape.hidden, shape.heads) != 0) {
    throw Error(fmt::format("--hidden {} is no multiple of --heads {}", shape.hidden, shape.heads));
  }
  shape.sequence = static_cast<double>(*values.integer("seq"));
  shape.flash_attention = values.given("flash-attention");
  if (const auto text = values.text("checkpointing")) shape.checkpointing = cost::parse_checkpointing(*text);
  return shape;
}

cost::EstimateRequest request_of(const Values& values) {
  for (const char* name : {"num-params", "world-size"}) {
    if (!values.given(name)) {
      throw Error(fmt::format("estimate needs --{}: type dsat-host estimate --num-params 7.5e9 --world-size 64", name));
    }
  }
  cost::EstimateRequest request;
  request.num_params = *values.number("num-params");
  request.trainable_params = values.number("trainable-params");
  request.world_size = *values.integer("world-size");
  if (const auto text = values.text("precision")) request.precision = cost::parse_precision(*text);
  if (const auto text = values.text("optimizer")) request.optimizer = cost::parse_optimizer(*text);
  request.transformer = transformer_of(values);
  if (const auto bytes = values.size("device-memory")) request.device_memory_bytes = static_cast<double>(*bytes);
  request.offload_optimizer = values.text("offload-optimizer") == "cpu";
  request.offload_param = values.text("offload-param") == "cpu";
  return request;
}

std::string bytes_text(const Json& bytes) { return bytes.is_number() ? format_size(bytes.get<double>()) : "-"; }

std::string table_of(const Json& estimate) {
  std::vector<std::vector<std::string>> rows{{"stage", "model states", "activations/sample", "max micro batch"}};
  for (const Json& stage : estimate.at("stages")) {
    const Json& limit = stage.at("max_micro_batch");
    rows.push_back({stage.at("stage").dump(), bytes_text(stage.at("model_state_bytes")),
                    bytes_text(stage.at("activation_bytes_per_sample")), limit.is_null() ? "-" : limit.dump()});
  }
  return format_table(rows, {true, true, true, true});
}

}  // namespace

int estimate(const Tokens& arguments, Console& console) {
  const auto request = read_request(estimate_options(), arguments, kUsageText, console);
  if (!request) return kBestFound;
  refuse_operands(request->operands, "estimate");
  const Json result = cost::estimate(request_of(request->values));
  if (console.json()) {
    console.print_json(result);
  } else {
    console.print(table_of(result));
    if (request->values.given("device-memory") && !request->values.given("layers")) {
      console.aside("the largest micro batch needs the transformer's shape too: --layers, --hidden, --heads and --seq");
    }
  }
  return kBestFound;
}

}  // namespace dsat::cli
