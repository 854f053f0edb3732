#include "slots/find_slots.h"

#include <algorithm>
#include <charconv>

#include "slots/hostfile.h"

namespace dsat::host {

namespace {

std::string count_of(size_t count) { return std::to_string(count) + (count == 1 ? " slot" : " slots"); }

std::vector<Slot> numbered_slots(int count) {
  std::vector<Slot> slots;
  for (int i = 0; i < count; ++i) slots.push_back({std::to_string(i), i, std::nullopt});
  return slots;
}

int largest(const std::vector<int>& numbers) {
  return numbers.empty() ? 0 : *std::max_element(numbers.begin(), numbers.end());
}

std::optional<int> parse_index(const std::string& text) {
  int index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  const bool whole = !text.empty() && error == std::errc() && end == text.data() + text.size();
  return whole && index >= 0 ? std::optional<int>(index) : std::nullopt;
}

// Without devices to count, as many slots as are asked for. One that --include alone names is not there.
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

Result<std::vector<Slot>> local_slots(const Devices& devices, const SlotRequest& request,
                                      std::vector<std::string>& notices) {
  if (devices.slots.empty()) return imagined_slots(request, notices);
  std::vector<Slot> slots = devices.slots;
  if (request.slots && *request.slots > static_cast<int>(slots.size())) {
    return Status::invalid("--slots " + std::to_string(*request.slots) + ", but only " + std::to_string(slots.size()) +
                           " devices are visible here");
  }
  if (request.slots) slots.resize(static_cast<size_t>(*request.slots));
  return slots;
}

// Slot 0 to N-1 of each host. Of this machine the devices are known, and with them their memory.
Result<std::vector<Slot>> hostfile_slots(const Devices& devices, const SlotRequest& request) {
  if (request.slots) {
    return Status::invalid("--slots " + std::to_string(*request.slots) + " and hostfile " + request.hostfile.string() +
                           ": both say how many slots there are; keep one");
  }
  const Result<std::vector<HostEntry>> hosts = read_hostfile(request.hostfile);
  if (!hosts.ok()) return hosts.status();
  std::vector<Slot> slots;
  bool this_machine_named = false;
  for (const HostEntry& host : hosts.value()) {
    const std::string place = request.hostfile.string() + ":" + std::to_string(host.line) + ": ";
    const bool here = is_this_machine(host.name);
    if (here && this_machine_named) {
      return Status::invalid(place + host.name +
                             " is this machine, which another line names already: keep one of them");
    }
    this_machine_named |= here;
    for (Slot slot : numbered_slots(host.slots)) {
      if (here && !devices.slots.empty()) {
        const auto device = std::find_if(devices.slots.begin(), devices.slots.end(),
                                         [&](const Slot& d) { return d.ordinal == slot.ordinal; });
        if (device == devices.slots.end()) {
          return Status::invalid(place + host.name + " has slots=" + std::to_string(host.slots) + ", but device " +
                                 slot.id + " is not visible on this machine");
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
    const std::optional<int> index = parse_index(text);
    return text == slot.id || (index && slot.ordinal == index);
  });
}

std::string known_hosts(const std::vector<Slot>& slots) {
  std::string text;
  for (const auto& [name, count] : SlotPool(slots, std::nullopt).hosts()) {
    text += (text.empty() ? "" : ", ") + (name.empty() ? std::string("localhost") : name) + " (" +
            count_of(static_cast<size_t>(count)) + ")";
  }
  return text;
}

// Every host and slot that a filter names must be there: DeepSpeed would end each trial over it.
Status check_filter(const NodeFilter& filter, const std::vector<Slot>& slots, const std::string& option) {
  const NodeFilter whole{filter.host, {}};
  const bool host_known = std::any_of(slots.begin(), slots.end(), [&](const Slot& s) { return names(whole, s); });
  if (!host_known) {
    return Status::invalid(option + " names host '" + filter.host + "', which is unknown: there is " +
                           known_hosts(slots));
  }
  for (const std::string& text : filter.slots) {
    const NodeFilter one{filter.host, {text}};
    if (std::any_of(slots.begin(), slots.end(), [&](const Slot& s) { return names(one, s); })) continue;
    return Status::invalid(option + " names slot '" + text + "' of " + filter.host + ", which is unknown: there is " +
                           known_hosts(slots));
  }
  return Status();
}

Result<std::vector<Slot>> filtered(std::vector<Slot> slots, const std::vector<NodeFilter>& filters,
                                   const std::string& option, bool keep, const std::string& hint) {
  for (const NodeFilter& filter : filters) {
    const Status status = check_filter(filter, slots, option);
    if (!status.ok()) return Status::invalid(status.message() + hint);
  }
  const auto dropped = [&](const Slot& slot) {
    const bool named = std::any_of(filters.begin(), filters.end(), [&](const auto& f) { return names(f, slot); });
    return named != keep;
  };
  slots.erase(std::remove_if(slots.begin(), slots.end(), dropped), slots.end());
  if (slots.empty()) return Status::invalid(option + " leaves no slot: exclude fewer");
  return slots;
}

// The sizes to try stand in the autotuning section: the command line's numbers say what may be used, the first nodes
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

Result<std::vector<Slot>> find_slots(const Devices& devices, const SlotRequest& request,
                                     std::vector<std::string>& notices) {
  if (!request.include.empty() && !request.exclude.empty()) {
    return Status::invalid("--include and --exclude are both given: keep one, as DeepSpeed's launcher wants it");
  }
  std::vector<NodeFilter> filters;
  const std::string option = request.include.empty() ? "--exclude" : "--include";
  if (const std::string& text = request.include.empty() ? request.exclude : request.include; !text.empty()) {
    auto parsed = parse_node_filters(text, option);
    if (!parsed.ok()) return parsed.status();
    filters = std::move(parsed).value();
  }
  const bool including = !request.include.empty();
  Result<std::vector<Slot>> found =
      request.hostfile.empty() ? local_slots(devices, request, notices) : hostfile_slots(devices, request);
  if (!found.ok()) return found.status();
  std::vector<Slot> slots = std::move(found).value();
  if (!filters.empty()) {
    const bool imagined = request.hostfile.empty() && devices.slots.empty() && !request.slots;
    const char* hint = imagined ? " (no accelerator was found, --slots N says how many slots there are)" : "";
    Result<std::vector<Slot>> kept = filtered(std::move(slots), filters, option, including, hint);
    if (!kept.ok()) return kept.status();
    slots = std::move(kept).value();
  }
  limit(slots, request);
  // What is left may be this machine alone, and then no host is to be reached.
  const bool all_here =
      std::all_of(slots.begin(), slots.end(), [](const Slot& s) { return s.host.empty() || is_this_machine(s.host); });
  for (Slot& slot : slots) {
    if (all_here) slot.host.clear();
  }
  return slots;
}

}  // namespace dsat::host
