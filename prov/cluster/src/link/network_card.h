// What the driver and the bus say about the network card behind an interface, as plain values.
// os/card_reader.h reads them.
#pragma once

#include <string>

namespace cluster::link {

/// A text is empty if it is not known. Only cards on the PCI bus have the last three texts.
struct NetworkCard {
  std::string driver;
  std::string firmware;
  std::string vendor_id;  ///< "0x15b3"
  std::string device_id;  ///< "0x1017"
  std::string revision;   ///< "0x00"

  friend bool operator==(const NetworkCard&, const NetworkCard&) = default;
};

}  // namespace cluster::link
