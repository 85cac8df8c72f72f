// Variables of libfabric that decide whether it finds the provider at all: where one is wrong the provider is never
// loaded, and can say nothing about it. Only files are looked at; nothing is loaded here either.
#pragma once

#include <string>

namespace cluster::info {

/// What is wrong with a value of FI_PROVIDER, with the cure; empty if nothing is, or it is not set (null).
std::string provider_trouble(const char* value);
/// The same of FI_PROVIDER_PATH: directories, and files behind an @, with colons in between.
std::string provider_path_trouble(const char* value);

}  // namespace cluster::info
