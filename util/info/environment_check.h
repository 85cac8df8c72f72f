// Checks the variables by which libfabric finds the provider. If one is wrong, libfabric never loads the
// provider, so the provider cannot report it. The check only looks at files and loads nothing.
#pragma once

#include <string>

namespace cluster::info {

/// What is wrong with a value of FI_PROVIDER, with the remedy; empty if nothing is, or if it is not set
/// (null).
std::string provider_trouble(const char* value);
/// The same for FI_PROVIDER_PATH: directories, and files behind an @, separated by colons.
std::string provider_path_trouble(const char* value);

}  // namespace cluster::info
