#include "wire_choice.h"

#include <CLI/CLI.hpp>
#include <map>

namespace perf {
namespace {

const std::map<std::string, SendBy> kSendBy{
    {"send", SendBy::send}, {"sendmmsg", SendBy::sendmmsg}, {"tx_ring", SendBy::tx_ring}};
const std::map<std::string, ReceiveBy> kReceiveBy{
    {"ring", ReceiveBy::ring}, {"recv", ReceiveBy::recv}, {"in_place", ReceiveBy::in_place}};
const std::map<std::string, FramesAs> kFramesAs{{"experimental", FramesAs::experimental},
                                                {"udp", FramesAs::udp}};
const std::map<std::string, Behind> kBehind{{"filter", Behind::filter},  {"no_gro", Behind::no_gro},
                                            {"deaf", Behind::deaf},      {"connected", Behind::connected},
                                            {"full", Behind::full},      {"nothing", Behind::nothing},
                                            {"bad_sum", Behind::bad_sum}};

const std::map<std::string, Tap> kTap{
    {"interface_type", Tap::interface_type}, {"type", Tap::type}, {"interface", Tap::interface}};

template <typename Choice>
void add_choice(CLI::App& app, const std::string& name, Choice& choice,
                const std::map<std::string, Choice>& words, const std::string& help) {
  const auto usual =
      std::find_if(words.begin(), words.end(), [&](const auto& word) { return word.second == choice; });
  app.add_option_function<std::string>(
         name, [&choice, &words](const std::string& word) { choice = words.at(word); }, help)
      ->check(CLI::IsMember(words))
      ->default_str(usual->first);
}

}  // namespace

void declare(CLI::App& app, WireChoice& choice) {
  app.add_option("--interface", choice.interface, "for frames: the interface that leads to the other node")
      ->capture_default_str();
  add_choice(app, "--send-by", choice.send_by, kSendBy,
             "a system call per frame (send), per --batch frames (sendmmsg), or a ring of frames that the "
             "kernel sends from, with a system call per --batch (tx_ring)");
  app.add_option("--batch", choice.batch, "frames per system call")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_flag("--qdisc", choice.qdisc, "through the queueing discipline, not past it");
  app.add_flag("--vnet-header", choice.vnet_header,
               "PACKET_VNET_HDR: a header for offloads in front of each");
  app.add_flag("--staged", choice.staged, "copy a super-frame together first, not gather it in the kernel");
  add_choice(app, "--frames-as", choice.frames_as, kFramesAs,
             "what frames are to the kernel: of an experimental type, or UDP over IPv4");
  add_choice(app, "--receive-by", choice.receive_by, kReceiveBy,
             "a ring that the kernel fills, recv() into memory of one's own, or, for super, recv() of each "
             "payload to where it belongs (in_place)");
  add_choice(
      app, "--tap", choice.tap, kTap,
      "what the receiving socket is bound to: an EtherType on the interface, to which frames come behind "
      "IP; that type everywhere; or everything on the interface, before IP and before any filter of "
      "the administrator's");
  app.add_option("--slot-bytes", choice.slot_bytes, "of that ring, a multiple of 16")
      ->check(CLI::Range(256, 131072))
      ->capture_default_str();
  app.add_option("--slots", choice.slots, "of that ring, rounded up to whole MiB")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  add_choice(
      app, "--behind", choice.behind, kBehind,
      "for UDP: what stands on the port, for the kernel's IP input looks at each frame after us. A "
      "socket that ignores the interface by a filter (filter); the same without UDP_GRO (no_gro), with "
      "a filter that refuses everything (deaf), or connected to the other side (connected); one that "
      "has no filter and a full buffer (full); no socket (nothing); or one of which IP never hears, since "
      "the checksum of the IP header is wrong (bad_sum, the least that is possible)");
}

}  // namespace perf
