// What the driver and the bus say about the network card behind an interface, as plain values.
// os/card_reader.h reads them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cluster::link {

/// The place of a card on the PCI bus, as in "0000:3b:00.1".
struct PciPlace {
  std::uint16_t domain = 0;
  std::uint8_t bus = 0;
  std::uint8_t device = 0;
  std::uint8_t function = 0;

  friend bool operator==(const PciPlace&, const PciPlace&) = default;
};

/// A text is empty if it is not known. Virtual interfaces have no place on the bus.
struct NetworkCard {
  std::string driver;
  std::string firmware;
  std::string vendor_id;  ///< "0x15b3"
  std::string device_id;  ///< "0x1017"
  std::string revision;   ///< "0x00"
  std::optional<PciPlace> pci;

  friend bool operator==(const NetworkCard&, const NetworkCard&) = default;
};

}  // namespace cluster::link
