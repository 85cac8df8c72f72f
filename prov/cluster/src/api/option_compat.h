// Endpoint options that libfabric defined after 1.17, whose headers the provider is compiled with. Programs
// built with newer headers use them. Values as in libfabric 2.x.
#pragma once

namespace cluster::api::compat {

// Endpoint options, since 1.18 to 1.20.
inline constexpr int kOptionMaxMessageSize = 12;
inline constexpr int kOptionMaxTaggedSize = 13;
inline constexpr int kOptionMaxRmaSize = 14;
inline constexpr int kOptionMaxAtomicSize = 15;
inline constexpr int kOptionInjectMessageSize = 16;
inline constexpr int kOptionInjectTaggedSize = 17;
inline constexpr int kOptionInjectRmaSize = 18;
inline constexpr int kOptionInjectAtomicSize = 19;

}  // namespace cluster::api::compat
