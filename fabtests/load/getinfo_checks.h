// The groups of questions that the probe puts to fi_getinfo, each in a file of its own. All of them
// go on after a failure.
#pragma once

#include "expectations.h"
#include "libfabric_library.h"

namespace load {

/// Every version of the interface, with and without hints.
void check_every_version(const LibfabricLibrary& core, Expectations& verdict);
/// Hints that the provider must grant, and fields that it must return as requested.
void check_granted_hints(const LibfabricLibrary& core, Expectations& verdict);
/// Hints that the provider must refuse.
void check_refused_hints(const LibfabricLibrary& core, Expectations& verdict);
/// Node, service, flags and addresses in hints.
void check_addresses(const LibfabricLibrary& core, Expectations& verdict);
/// Opens a fabric, a domain and an endpoint on loopback, and closes them.
void check_open_endpoint(const LibfabricLibrary& core, Expectations& verdict);

}  // namespace load
