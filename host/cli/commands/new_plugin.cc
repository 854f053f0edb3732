// dsat-host new-plugin NAME: writes the files of a searcher into a new folder, and says how it is built and tested.
#include "scaffold/new_plugin.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "commands/commands.h"
#include "commands/host_options.h"
#include "commands/subcommand.h"
#include "dsat/base/files.h"
#include "dsat/base/shell.h"
#include "dsat/error.h"
#include "dsat/host/environment.h"
#include "terminal/exit_status.h"

namespace dsat::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUsageText =
    "Usage: dsat-host new-plugin NAME [--language python|c|c++|rust]\n"
    "\n"
    "Begins a searcher of your own: a folder NAME with a searcher that works, what builds it, and its test, which has\n"
    "dsat-host validate it. Nothing that is there already is changed.\n"
    "\n";

// What makes the build and the test find this program and, as CMake looks beside PATH's folders, what came with it.
std::string path_with(const fs::path& program) {
  const auto in_path = host::find_program("dsat-host", "/", host::current_environment());
  std::error_code ignored;
  if (in_path.ok() && fs::equivalent(in_path.value(), program, ignored)) return "";
  return fmt::format("export PATH={}:$PATH; ", shell_quote(program.parent_path().string()));
}

void write(const fs::path& folder, const NewPlugin& plugin) {
  std::error_code error;
  if (!fs::create_directory(folder, error)) {
    throw Error(error ? fmt::format("cannot make the folder {}: {}", folder.string(), error.message())
                      : fmt::format("{} is there already: take another name", folder.string()));
  }
  for (const NewFile& file : plugin.files) {
    const fs::path path = folder / file.path;
    fs::create_directories(path.parent_path(), error);
    write_file_atomically(path, file.text);
  }
}

}  // namespace

int new_plugin(const Tokens& arguments, Console& console) {
  const auto request = read_request(new_plugin_options(), arguments, kUsageText, console);
  if (!request) return kBestFound;
  if (request->operands.size() != 1) {
    throw Error(request->operands.empty()
                    ? std::string("new-plugin needs a name: type dsat-host new-plugin my_search")
                    : fmt::format("new-plugin takes one name: '{}' is one too many", request->operands[1]));
  }
  const std::string& name = request->operands.front();
  const std::string language = request->values.text("language").value_or(languages_of_plugins().front());
  const NewPlugin plugin = new_plugin(name, language);
  write(name, plugin);
  for (const NewFile& file : plugin.files) console.line(fmt::format("written  {}/{}", name, file.path));
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  console.line("build and test it, then tune with it:");
  console.line(fmt::format("  cd {}; {}{}", name, path_with(program), plugin.build_and_test));
  console.line(fmt::format("  dsat-host --searcher {}/{} -- COMMAND", name, plugin.plugin));
  return kBestFound;
}

}  // namespace dsat::cli
