// Prints the page of `weft serve`, for page_test.py.
#include <cstdio>

#include "weft/apps/serve/serve_page.h"

int main() { return std::fputs(weft::kServePage, stdout) < 0 ? 1 : 0; }
