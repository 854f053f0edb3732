// Finds this machine's accelerators by the output of nvidia-smi or rocm-smi, limited by the caller's visibility
// variables.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/event_loop.h"
#include "base/subprocess.h"
#include "dsat/base/numbers.h"
#include "dsat/base/utf8.h"
#include "dsat/error.h"
#include "slots/slots.h"

namespace dsat::host {

namespace {

// Without persistence mode nvidia-smi first wakes every device, which takes seconds on a large machine.
constexpr std::chrono::seconds kToolTimeout{30};

struct Device {
  int index = 0;
  std::string uuid;
  std::optional<uint64_t> memory_bytes;
  uint64_t in_use_bytes = 0;
};

std::string read_from_start(int fd) {
  std::string text;
  char buffer[4096];
  ssize_t got = 0;
  for (off_t at = 0; (got = pread(fd, buffer, sizeof buffer, at)) > 0; at += got) {
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

// Returns false if the tool cannot be started, fails, or is too slow.
bool succeeds(const SpawnOptions& options) {
  Loop loop;
  std::optional<ExitStatus> ended;
  bool late = false;
  loop.at(Loop::Clock::now() + kToolTimeout, [&] { late = true; });
  try {
    const auto tool = Subprocess::spawn(loop, options, [&](const ExitStatus& status) { ended = status; });
    while (!ended && !late) loop.run_once();
  } catch (const Error&) {
    return false;
  }
  return ended && ended->code == 0;
}

// Returns the tool's output; nullopt: it is missing, fails, or does not answer.
std::optional<std::string> run_tool(const std::vector<std::string>& argv, const Environment& environment) {
  const auto program = find_program(argv[0], std::filesystem::current_path(), environment);
  if (!program.ok()) return std::nullopt;
  const int output = memfd_create("dsat-tool", MFD_CLOEXEC);
  if (output < 0) return std::nullopt;
  SpawnOptions options;
  options.argv = argv;
  options.argv[0] = program.value().string();
  options.environment = environment;
  options.stdout_fd = output;
  std::optional<std::string> text;
  if (succeeds(options)) text = read_from_start(output);
  close(output);
  return text;
}

std::vector<std::string> trimmed_fields(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(separator, start), text.size());
    const size_t first = std::min(text.find_first_not_of(" \t", start), end);
    const size_t last = end == first ? end : text.find_last_not_of(" \t", end - 1) + 1;
    parts.push_back(text.substr(first, last - first));
    start = end + 1;
  }
  return parts;
}

// Parses "0, GPU-5c5f..., 81559, 4": index, UUID, MiB ("[N/A]" if memory is shared with the host), MiB in use.
std::vector<Device> nvidia_devices(const Environment& environment) {
  const auto text = run_tool(
      {"nvidia-smi", "--query-gpu=index,uuid,memory.total,memory.used", "--format=csv,noheader,nounits"}, environment);
  std::vector<Device> devices;
  for (const std::string& line : printable_lines(text.value_or(""))) {
    const std::vector<std::string> fields = trimmed_fields(line, ',');
    const auto index = parse_count(fields[0]);
    if (fields.size() != 4 || !index) continue;
    Device device{*index, fields[1], std::nullopt};
    if (const auto mebibytes = parse_count(fields[2])) device.memory_bytes = static_cast<uint64_t>(*mebibytes) << 20;
    if (const auto mebibytes = parse_count(fields[3])) device.in_use_bytes = static_cast<uint64_t>(*mebibytes) << 20;
    devices.push_back(device);
  }
  return devices;
}

// Parses {"card0": {"VRAM Total Memory (B)": "68702699520", "Unique ID": "0x..."}, ...}, perhaps after warnings.
std::vector<Device> rocm_devices(const Environment& environment) {
  const auto text = run_tool({"rocm-smi", "--showmeminfo", "vram", "--showuniqueid", "--json"}, environment);
  const size_t start = text ? text->find('{') : std::string::npos;
  std::vector<Device> devices;
  if (start == std::string::npos) return devices;
  const Json json = Json::parse(text->substr(start), nullptr, false);
  if (!json.is_object()) return devices;
  for (const auto& [name, card] : json.items()) {
    if (name.rfind("card", 0) != 0 || !card.is_object()) continue;
    const auto index = parse_count(name.substr(4));
    if (!index) continue;
    Device device{*index, {}, std::nullopt};
    const auto field = [&card = card](const char* key) {
      return card.contains(key) && card[key].is_string() ? card[key].get<std::string>() : std::string();
    };
    const std::string id = field("Unique ID");
    if (id.rfind("0x", 0) == 0) device.uuid = "GPU-" + id.substr(2);
    if (const auto bytes = parse_integer(field("VRAM Total Memory (B)"), 0)) {
      device.memory_bytes = static_cast<uint64_t>(*bytes);
    }
    if (const auto bytes = parse_integer(field("VRAM Total Used Memory (B)"), 0)) {
      device.in_use_bytes = static_cast<uint64_t>(*bytes);
    }
    devices.push_back(device);
  }
  std::sort(devices.begin(), devices.end(), [](const Device& a, const Device& b) { return a.index < b.index; });
  return devices;
}

bool holds(const std::vector<Slot>& slots, const std::string& id) {
  return std::any_of(slots.begin(), slots.end(), [&](const Slot& slot) { return slot.id == id; });
}

// Returns the devices in a visibility variable, in its order. As in the drivers, an entry is an index or the begin of a
// UUID; the first invalid entry ends the list; a slice of a device keeps its name. A device that is named twice is one
// slot.
std::vector<Slot> visible_slots(const std::vector<Device>& devices, const std::optional<std::string>& variable) {
  std::vector<Slot> slots;
  if (!variable) {
    for (const Device& device : devices) {
      slots.push_back(
          {fmt::to_string(device.index), device.index, device.memory_bytes, {}, device.in_use_bytes, device.uuid});
    }
    return slots;
  }
  for (const std::string& entry : trimmed_fields(*variable, ',')) {
    if (entry.rfind("MIG-", 0) == 0) {
      if (!holds(slots, entry)) slots.push_back({entry, std::nullopt, std::nullopt});
      continue;
    }
    const auto index = parse_count(entry);
    const auto it = std::find_if(devices.begin(), devices.end(), [&](const Device& device) {
      return index ? device.index == *index : !entry.empty() && device.uuid.rfind(entry, 0) == 0;
    });
    if (it == devices.end()) break;
    const auto is_it = [&](const Slot& slot) { return slot.ordinal == it->index; };
    if (std::any_of(slots.begin(), slots.end(), is_it)) continue;
    slots.push_back({entry, it->index, it->memory_bytes, {}, it->in_use_bytes, it->uuid});
  }
  return slots;
}

// HIP reads CUDA's variable if its own is empty or not set.
std::optional<std::string> hip_devices(const Environment& environment) {
  const auto own = get_variable(environment, "HIP_VISIBLE_DEVICES");
  const auto other = get_variable(environment, "CUDA_VISIBLE_DEVICES");
  return other && own.value_or("").empty() ? other : own;
}

}  // namespace

Devices discover_devices(const Environment& environment) {
  Devices found;
  if (const auto devices = nvidia_devices(environment); !devices.empty()) {
    found.slots = visible_slots(devices, get_variable(environment, "CUDA_VISIBLE_DEVICES"));
    found.backend = Backend::cuda;
  } else if (const auto cards = rocm_devices(environment); !cards.empty()) {
    // Only one variable is used, because the runtimes would apply two of them one after the other.
    const auto rocr = get_variable(environment, "ROCR_VISIBLE_DEVICES");
    found.slots = visible_slots(cards, rocr ? rocr : hip_devices(environment));
    found.backend = rocr ? Backend::rocr : Backend::hip;
  } else if (const auto mask = get_variable(environment, "ZE_AFFINITY_MASK"); mask && !mask->empty()) {
    // A number is the index of a whole device; 0.1 is a tile of a device.
    for (const std::string& entry : trimmed_fields(*mask, ',')) {
      if (!holds(found.slots, entry)) found.slots.push_back({entry, parse_count(entry), std::nullopt});
    }
    found.backend = Backend::level_zero;
  }
  if (found.slots.empty()) found.backend = Backend::none;
  return found;
}

}  // namespace dsat::host
