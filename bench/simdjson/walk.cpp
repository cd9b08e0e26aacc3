// Reads a Chrome trace with simdjson's on-demand interface and looks at one
// field of every event: the least that any reader of the file has to do.
#include <cstdio>
#include <simdjson.h>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: walk TRACE.json\n");
    return 2;
  }
  simdjson::padded_string json;
  if (auto error = simdjson::padded_string::load(argv[1]).get(json)) {
    std::fprintf(stderr, "%s: %s\n", argv[1], simdjson::error_message(error));
    return 1;
  }
  simdjson::ondemand::parser parser;
  simdjson::ondemand::document document;
  simdjson::ondemand::array events;
  auto error = parser.iterate(json).get(document);
  if (!error) error = document["traceEvents"].get_array().get(events);
  size_t count = 0, complete = 0;
  if (!error) {
    for (auto event : events) {
      std::string_view phase;
      if ((error = event["ph"].get_string().get(phase))) break;
      ++count;
      complete += phase == "X";
    }
  }
  if (error) {
    std::fprintf(stderr, "%s: %s\n", argv[1], simdjson::error_message(error));
    return 1;
  }
  std::printf("%zu events, %zu complete\n", count, complete);
}
