// The names of the command-line kit (dsat/cli) that dsat-host uses.
#ifndef DSAT_CLI_OPTIONS_KIT_H_
#define DSAT_CLI_OPTIONS_KIT_H_

#include "dsat/cli/grammar.h"
#include "dsat/cli/values.h"

namespace dsat::cli {

using cli_kit::Again;
using cli_kit::Grammar;
using cli_kit::Option;
using cli_kit::OptionSet;
using cli_kit::Split;
using cli_kit::Takes;
using cli_kit::Tokens;
using cli_kit::Values;

}  // namespace dsat::cli

#endif  // DSAT_CLI_OPTIONS_KIT_H_
