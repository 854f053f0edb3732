// Lists the slots of this machine or of a hostfile, then removes those outside --include, in --exclude, or beyond the
// command line's numbers.
#include "slots/find_slots.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "dsat/base/numbers.h"
#include "dsat/error.h"
#include "slots/hostfile.h"

namespace dsat::host {

namespace {

std::string count_of(size_t count) { return fmt::format("{} {}", count, count == 1 ? "slot" : "slots"); }

std::vector<Slot> numbered_slots(int count) {
  std::vector<Slot> slots;
  for (int i = 0; i < count; ++i) slots.push_back({fmt::to_string(i), i, std::nullopt});
  return slots;
}

int largest(const std::vector<int>& numbers) {
  return numbers.empty() ? 0 : *std::max_element(numbers.begin(), numbers.end());
}

// Without visible devices, there are as many slots as the options ask for. --include alone adds no slot.
std::vector<Slot> imagined_slots(const SlotRequest& request, std::vector<std::string>& notices) {
  if (request.slots) return numbered_slots(*request.slots);
  int count = std::max({request.slots_per_trial.value_or(0), largest(request.num_gpus), largest(request.section_gpus)});
  if (count == 0) count = request.command_slots.value_or(1);
  const bool one_size = request.section_gpus.empty() && request.num_gpus.size() <= 1;
  if (request.include.empty() && request.exclude.empty()) {
    notices.push_back("no accelerator found: " + count_of(static_cast<size_t>(count)) +
                      (one_size ? ", so one trial at a time" : ", as many as the largest trial takes") +
                      " (--slots N for more)");
  }
  return numbered_slots(count);
}

std::vector<Slot> local_slots(const Devices& devices, const SlotRequest& request, std::vector<std::string>& notices) {
  if (devices.slots.empty()) return imagined_slots(request, notices);
  std::vector<Slot> slots = devices.slots;
  if (request.slots && *request.slots > static_cast<int>(slots.size())) {
    throw Error(fmt::format("--slots {}, but only {} devices are visible here", *request.slots, slots.size()));
  }
  if (request.slots) slots.resize(static_cast<size_t>(*request.slots));
  return slots;
}

// Each host has slots 0 to N-1. This machine's devices are known, and so is their memory.
std::vector<Slot> hostfile_slots(const Devices& devices, const SlotRequest& request) {
  if (request.slots) {
    throw Error(fmt::format("--slots {} and hostfile {}: both say how many slots there are; keep one", *request.slots,
                            request.hostfile.string()));
  }
  std::vector<Slot> slots;
  bool this_machine_named = false;
  for (const HostEntry& host : read_hostfile(request.hostfile, request.hostfile_text)) {
    const std::string place = fmt::format("{}:{}: ", request.hostfile.string(), host.line);
    const bool here = is_this_machine(host.name);
    if (here && this_machine_named) {
      throw Error(
          fmt::format("{}{} is this machine, which another line names already: keep one of them", place, host.name));
    }
    this_machine_named |= here;
    for (Slot slot : numbered_slots(host.slots)) {
      if (here && !devices.slots.empty()) {
        const auto device = std::find_if(devices.slots.begin(), devices.slots.end(),
                                         [&](const Slot& d) { return d.ordinal == slot.ordinal; });
        if (device == devices.slots.end()) {
          throw Error(fmt::format("{}{} has slots={}, but device {} is not visible on this machine", place, host.name,
                                  host.slots, slot.id));
        }
        slot = *device;
      }
      slot.host = host.name;
      slots.push_back(std::move(slot));
    }
  }
  return slots;
}

bool names(const NodeFilter& filter, const Slot& slot) {
  const bool host = slot.host.empty() ? is_this_machine(filter.host) : filter.host == slot.host;
  if (!host) return false;
  if (filter.slots.empty()) return true;
  return std::any_of(filter.slots.begin(), filter.slots.end(), [&](const std::string& text) {
    const std::optional<int> index = parse_count(text);
    return text == slot.id || (index && slot.ordinal == index);
  });
}

std::string known_hosts(const std::vector<Slot>& slots) {
  std::vector<std::string> hosts;
  for (const auto& [name, count] : SlotPool(slots, std::nullopt).hosts()) {
    hosts.push_back(fmt::format("{} ({})", name.empty() ? "localhost" : name, count_of(static_cast<size_t>(count))));
  }
  return fmt::format("{}", fmt::join(hosts, ", "));
}

// A filter may only name known hosts and slots; DeepSpeed would end each trial otherwise.
void check_filter(const NodeFilter& filter, const std::vector<Slot>& slots, const std::string& option,
                  const std::string& hint) {
  const NodeFilter whole{filter.host, {}};
  const bool host_known = std::any_of(slots.begin(), slots.end(), [&](const Slot& s) { return names(whole, s); });
  if (!host_known) {
    throw Error(fmt::format("{} names host '{}', which is unknown: there is {}{}", option, filter.host,
                            known_hosts(slots), hint));
  }
  for (const std::string& text : filter.slots) {
    const NodeFilter one{filter.host, {text}};
    if (std::any_of(slots.begin(), slots.end(), [&](const Slot& s) { return names(one, s); })) continue;
    throw Error(fmt::format("{} names slot '{}' of {}, which is unknown: there is {}{}", option, text, filter.host,
                            known_hosts(slots), hint));
  }
}

std::vector<Slot> filtered(std::vector<Slot> slots, const std::vector<NodeFilter>& filters, const std::string& option,
                           bool keep, const std::string& hint) {
  for (const NodeFilter& filter : filters) check_filter(filter, slots, option, hint);
  const auto dropped = [&](const Slot& slot) {
    const bool named = std::any_of(filters.begin(), filters.end(), [&](const auto& f) { return names(f, slot); });
    return named != keep;
  };
  slots.erase(std::remove_if(slots.begin(), slots.end(), dropped), slots.end());
  if (slots.empty()) throw Error(option + " leaves no slot: exclude fewer");
  return slots;
}

// The autotuning section has the sizes to try. Then the command line's numbers limit the usable slots: the first nodes,
// and the first slots of each.
void limit(std::vector<Slot>& slots, const SlotRequest& request) {
  if (request.section_gpus.empty() && request.section_nodes.empty()) return;
  std::vector<Slot> kept;
  int node = -1, of_node = 0;
  const std::string* host = nullptr;
  for (const Slot& slot : slots) {
    if (host == nullptr || *host != slot.host) {
      host = &slot.host;
      ++node;
      of_node = 0;
    }
    const bool too_many_nodes = request.num_nodes.size() == 1 && node >= request.num_nodes[0];
    const bool too_many_slots = request.num_gpus.size() == 1 && of_node >= request.num_gpus[0];
    if (!too_many_nodes && !too_many_slots) kept.push_back(slot);
    ++of_node;
  }
  slots = std::move(kept);
}

}  // namespace

std::vector<Slot> find_slots(const Devices& devices, const SlotRequest& request, std::vector<std::string>& notices) {
  if (!request.include.empty() && !request.exclude.empty()) {
    throw Error("--include and --exclude are both given: keep one, as for DeepSpeed's launcher");
  }
  const bool including = !request.include.empty();
  const std::string option = including ? "--include" : "--exclude";
  const std::string& filter = including ? request.include : request.exclude;
  std::vector<NodeFilter> filters;
  if (!filter.empty()) filters = parse_node_filters(filter, option);
  std::vector<Slot> slots = !request.given.empty()     ? request.given
                            : request.hostfile.empty() ? local_slots(devices, request, notices)
                                                       : hostfile_slots(devices, request);
  if (!filters.empty()) {
    const bool imagined = request.hostfile.empty() && devices.slots.empty() && !request.slots;
    const char* hint = imagined ? " (no accelerator was found, --slots N says how many slots there are)" : "";
    slots = filtered(std::move(slots), filters, option, including, hint);
  }
  limit(slots, request);
  if (!request.given.empty()) return slots;
  // If all remaining slots are on this machine, no host must be reached.
  const bool all_here =
      std::all_of(slots.begin(), slots.end(), [](const Slot& s) { return s.host.empty() || is_this_machine(s.host); });
  for (Slot& slot : slots) {
    if (all_here) slot.host.clear();
  }
  return slots;
}

}  // namespace dsat::host
