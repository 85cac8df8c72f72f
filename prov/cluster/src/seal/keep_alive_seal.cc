#include "seal/keep_alive_seal.h"

#include <cstring>

#include "seal/association.h"

namespace cluster::seal {
namespace {

using Message = std::array<std::byte, 1 + sizeof(wire::FrameHeader) + sizeof(wire::Le64) + kNameSize>;

Message message_of(Mode mode, const wire::FrameHeader& header, const SocketAddress& asked,
                   wire::Le64 counter) {
  Message message;
  std::byte* at = message.data();
  *at++ = static_cast<std::byte>(mode);
  std::memcpy(at, &header, sizeof header);
  std::memcpy(at += sizeof header, &counter, sizeof counter);
  write_name(asked, at + sizeof counter);
  return message;
}

}  // namespace

void seal_keep_alive(const JobKey& key, Mode mode, const wire::FrameHeader& header,
                     const SocketAddress& asked, wire::SealTrailer& trailer) {
  const Tag tag =
      key.authenticate(JobKey::Purpose::keep_alive, message_of(mode, header, asked, trailer.counter));
  std::memcpy(trailer.tag, tag.data(), tag.size());
}

bool verify_keep_alive(const JobKey& key, Mode mode, const wire::FrameHeader& header,
                       const SocketAddress& asked, const wire::SealTrailer& trailer) {
  return key.verify(JobKey::Purpose::keep_alive, message_of(mode, header, asked, trailer.counter),
                    reinterpret_cast<const std::byte*>(trailer.tag));
}

bool answer_keep_alive(const Credentials& credentials, ConstBytes frame, const SocketAddress& asked,
                       KeepAliveAnswer& answer) {
  wire::FrameHeader header;
  wire::SealTrailer trailer;
  if (frame.size() < sizeof header + sizeof trailer) return false;
  std::memcpy(&header, frame.data(), sizeof header);
  std::memcpy(&trailer, frame.data() + frame.size() - sizeof trailer, sizeof trailer);
  const bool asks = header.magic == wire::kMagic && header.version == wire::kVersion &&
                    header.flags == wire::frame_flag::kSealed && header.length == frame.size() &&
                    header.kind == static_cast<std::uint8_t>(wire::FrameKind::keep_alive);
  if (!asks) return false;
  for (const auto& key : credentials.keys) {
    if (!verify_keep_alive(*key, credentials.mode, header, asked, trailer)) continue;
    header.kind = static_cast<std::uint8_t>(wire::FrameKind::alive);
    header.length = static_cast<std::uint16_t>(answer.size());
    header.session = header.sequence;  // in a keep-alive, the sequence field holds the sender's session
    seal_keep_alive(*key, credentials.mode, header, asked, trailer);
    std::memcpy(answer.data(), &header, sizeof header);
    std::memcpy(answer.data() + sizeof header, &trailer, sizeof trailer);
    return true;
  }
  return false;
}

}  // namespace cluster::seal
