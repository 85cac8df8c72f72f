// A UDP socket on the interface that leads to the other node, connected to the one that the other side
// makes at the same moment: both meet on the line meanwhile.
#pragma once

#include <string>

#include "control_connection.h"

namespace perf {

class UdpSocket {
 public:
  UdpSocket(ControlConnection& line, const std::string& interface);
  UdpSocket(const UdpSocket&) = delete;
  UdpSocket& operator=(const UdpSocket&) = delete;
  ~UdpSocket();

  int file() const { return file_; }

 private:
  int file_ = -1;
};

}  // namespace perf
