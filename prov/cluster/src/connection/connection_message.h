// The messages by which two endpoints connect (FI_EP_MSG). They travel as internal messages, so no receive of
// the application ever matches them. Their format is:
//
//   u8 kind | 7 bytes of zero | u64 id | private data of the application, at most kPrivateDataMax bytes
//
// The connecting endpoint draws `id`, and sends it in its request. All further messages of the connection
// contain `id`, too. In addition, `id` is the remote completion data of the internal message. By `id`, each
// side recognises the messages of other attempts.
//
// Requests, claims and accepts ask for a confirmation. Every endpoint, of any type, refuses such a message
// unless the endpoint expects the message. The connecting endpoint may have closed, and a new endpoint may
// have its address. In this case the new endpoint refuses the accept, and is not connected.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/address.h"
#include "base/bytes.h"

namespace cluster::connection {

inline constexpr std::size_t kPrivateDataMax = 256;
/// The tag of all connection messages. No collective operation uses it (collective/team.h).
inline constexpr std::uint64_t kTag = ~std::uint64_t{0};

enum class MessageKind : std::uint8_t {
  request = 1,  ///< the sender asks a passive endpoint for a connection
  accept,       ///< tells the connecting endpoint: the sender is your peer
  reject,       ///< tells the connecting endpoint: you are refused
  shutdown,     ///< the connection ends, or the accept came too late
  taken,        ///< tells the connecting endpoint: the endpoint whose address is in `data` will answer you
  claim,        ///< tells the endpoint that `taken` has named: I wait for your answer
};

struct Message {
  MessageKind kind = MessageKind::request;
  std::uint64_t id = 0;
  ConstBytes data{};  ///< at most kPrivateDataMax bytes
};

inline constexpr std::size_t kMessageHeader = 16;
inline constexpr std::size_t kMessageMax = kMessageHeader + kPrivateDataMax;

/// An encoded message.
struct MessageBytes {
  std::array<std::byte, kMessageMax> bytes;
  std::size_t size = 0;

  ConstBytes span() const { return {bytes.data(), size}; }
};

MessageBytes encode(const Message& message);
/// The gate for arriving messages. Returns false if the bytes are no message. `out.data` points into `in`.
bool decode(ConstBytes in, Message& out);

/// The data of the message `taken`.
using AddressBytes = std::array<std::byte, 20>;
AddressBytes encode_address(const SocketAddress& address);
/// Returns an empty address if no endpoint can have the address in `in`. `sender`: the endpoint that has sent
/// the message. A link-local address gets its scope from the sender's address.
SocketAddress decode_address(ConstBytes in, const SocketAddress& sender);

}  // namespace cluster::connection
