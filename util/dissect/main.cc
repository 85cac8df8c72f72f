// cluster-dissect: prints the frames of a capture or of an interface.
#include <pcap/pcap.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>

#include "frame_printer.h"

namespace {

using namespace cluster::dissect;

constexpr int kSnapshotBytes = 262144;  // super-frames whole
constexpr int kReadTimeoutMs = 100;     // how long a live capture collects frames before it hands them on
constexpr int kBufferBytes = 64 << 20;

struct CommandLine {
  std::string file;
  std::string interface;
  Wanted wanted;
};

struct Close {
  void operator()(pcap_t* capture) const { pcap_close(capture); }
};
using Capture = std::unique_ptr<pcap_t, Close>;

pcap_t* live = nullptr;  // for the signal handler only

void declare(CLI::App& app, CommandLine& line) {
  app.add_option("FILE", line.file, "capture (pcap or pcapng); - is standard input");
  app.add_option("-i,--interface", line.interface,
                 "listen to this interface instead (needs CAP_NET_RAW); any means all interfaces");
  app.add_option("-p,--port", line.wanted.port, "only datagrams from or to this UDP port")
      ->check(CLI::Range(1, 65535));
  app.add_option("-P,--peer", line.wanted.peer, "only datagrams from or to this IP address");
  app.add_option("-n,--count", line.wanted.count, "stop after this many frames");
  app.add_flag("-s,--segments", line.wanted.segments, "a line for each segment in a frame, too");
  app.add_flag("-a,--all", line.wanted.others, "list UDP datagrams of other protocols, too");
  app.set_version_flag("--version", "cluster-dissect " CLUSTER_VERSION);
  app.footer(
      "A line is: seconds since the first packet, sender, receiver, and the frame as docs/protocol.md\n"
      "names its fields. Frames that an endpoint would refuse are marked damaged or malformed.\n\n"
      "  tcpdump -i eth0 -w out.pcap udp; cluster-dissect --segments out.pcap\n"
      "  vcluster exec node1 cluster-dissect -i eth0 --peer 10.64.0.2");
}

Capture open_live(const std::string& interface, std::string& reason) {
  char text[PCAP_ERRBUF_SIZE] = {};
  Capture capture(pcap_create(interface.c_str(), text));
  reason = text;
  if (!capture) return nullptr;
  pcap_set_snaplen(capture.get(), kSnapshotBytes);
  pcap_set_timeout(capture.get(), kReadTimeoutMs);
  pcap_set_buffer_size(capture.get(), kBufferBytes);
  pcap_set_tstamp_precision(capture.get(), PCAP_TSTAMP_PRECISION_NANO);
  const int status = pcap_activate(capture.get());
  if (status >= 0) return capture;
  reason = *pcap_geterr(capture.get()) != 0 ? pcap_geterr(capture.get()) : pcap_statustostr(status);
  return nullptr;
}

Capture open_file(const std::string& file, std::string& reason) {
  char text[PCAP_ERRBUF_SIZE] = {};
  Capture capture(pcap_open_offline_with_tstamp_precision(file.c_str(), PCAP_TSTAMP_PRECISION_NANO, text));
  reason = text;
  return capture;
}

bool framing_of(pcap_t* capture, Framing& framing) {
  switch (pcap_datalink(capture)) {
    case DLT_EN10MB: framing = Framing::ethernet; return true;
    case DLT_LINUX_SLL2: framing = Framing::any_interface; return true;
    case DLT_RAW: framing = Framing::ip; return true;
    default: return false;
  }
}

/// Returns when the capture ends, or why it did not end well.
std::string dissect(pcap_t* capture, Framing framing, FramePrinter& account) {
  std::uint64_t begin_ns = 0;
  while (!account.complete()) {
    pcap_pkthdr* header = nullptr;
    const unsigned char* bytes = nullptr;
    const int status = pcap_next_ex(capture, &header, &bytes);
    if (status == 0) {
      std::fflush(stdout);
      continue;
    }
    if (status == PCAP_ERROR_BREAK) return "";
    if (status < 0) return pcap_geterr(capture);
    const std::uint64_t now_ns = static_cast<std::uint64_t>(header->ts.tv_sec) * 1'000'000'000 +
                                 static_cast<std::uint64_t>(header->ts.tv_usec);  // holds ns, as asked
    if (begin_ns == 0) begin_ns = now_ns;
    const auto found = find_udp_packet(std::as_bytes(std::span(bytes, header->caplen)), framing);
    if (found) account.take(*found, now_ns < begin_ns ? 0 : now_ns - begin_ns);
  }
  return "";
}

int fail(const std::string& what) {
  std::fprintf(stderr, "cluster-dissect: %s\n", what.c_str());
  return 1;
}

int run(const CommandLine& line) {
  if (line.file.empty() == line.interface.empty())
    return fail("give a FILE or an --interface (see \"cluster-dissect --help\")");
  std::string reason;
  const std::string& name = line.file.empty() ? line.interface : line.file;
  const Capture capture = line.file.empty() ? open_live(name, reason) : open_file(name, reason);
  if (!capture) return fail(reason.find(name) == std::string::npos ? name + ": " + reason : reason);
  Framing framing{};
  if (!framing_of(capture.get(), framing)) return fail(name + ": its packets are neither Ethernet nor IP");
  if (line.file.empty()) {
    live = capture.get();
    for (const int number : {SIGINT, SIGTERM}) std::signal(number, [](int) { pcap_breakloop(live); });
    std::fprintf(stderr, "listening on %s\n", name.c_str());
  }
  FramePrinter account(line.wanted, stdout);
  reason = dissect(capture.get(), framing, account);
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", account.summary().c_str());
  return reason.empty() ? 0 : fail(name + ": " + reason);
}

}  // namespace

int main(int count, char** words) {
  CLI::App app("Frames of the cluster provider, from a capture or an interface, as text.", "cluster-dissect");
  CommandLine line;
  declare(app, line);
  try {
    app.parse(count, words);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    std::fprintf(stderr, "cluster-dissect: %s (see \"cluster-dissect --help\")\n", error.what());
    return 2;
  }
  return run(line);
}
