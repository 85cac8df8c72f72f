// The choices that a way between two nodes is made of, each an option of bare_perf: how frames are
// sent, received, and what the kernel's IP input finds when it looks at them after us.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace perf {

enum class SendBy { send, sendmmsg, tx_ring };
enum class ReceiveBy { ring, recv, in_place };
enum class FramesAs { experimental, udp };
/// What stands on the port behind the packet socket.
enum class Behind { filter, no_gro, deaf, connected, full, nothing, bad_sum };

/// What the receiving socket is bound to.
enum class Tap { interface_type, type, interface };

struct WireChoice {
  std::string interface = "eth0";
  SendBy send_by = SendBy::send;
  unsigned batch = 1;  ///< frames per call
  bool qdisc = false;  ///< through the queueing discipline
  bool vnet_header = false;
  bool staged = false;  ///< super-frames are put together in memory before they are sent
  FramesAs frames_as = FramesAs::experimental;
  ReceiveBy receive_by = ReceiveBy::ring;
  Tap tap = Tap::interface_type;
  unsigned slot_bytes = 2048;
  unsigned slots = 1024;
  Behind behind = Behind::filter;
};

void declare(CLI::App& app, WireChoice& choice);

}  // namespace perf
