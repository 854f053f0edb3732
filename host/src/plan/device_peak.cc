// Reads the table anew at each call: it is small and rarely asked.
#include "plan/device_peak.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "dsat/config/json.h"
#include "dsat/error.h"

namespace dsat::host {

double device_peak_flops(const std::string& name) {
  const Json table = config::parse(kDevicesJson, "devices.json");
  std::vector<std::string> names;
  for (const Json& device : table.at("devices")) {
    names.push_back(device.at("name").get<std::string>());
    if (names.back() == name) return device.at("flops").get<double>();
  }
  throw Error(fmt::format("--device {}: no such device is known; known are {}", name, fmt::join(names, ", ")));
}

}  // namespace dsat::host
