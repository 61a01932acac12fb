import { type ActorSpec, firstText, type ItemShape, limitOf, simProperty } from './actor.js';

const urlList = { type: 'array', description: 'Where to begin', items: { type: 'object' } } as const;
const proxy = { type: 'object', description: 'Proxy' } as const;

const pageShape: ItemShape = {
  fields: [
    'url',
    'crawl.loadedUrl',
    'crawl.loadedTime',
    'crawl.depth',
    'crawl.httpStatusCode',
    'metadata.title',
    'metadata.languageCode',
    'text',
    'markdown',
  ],
  core: (i) => `"url":"https://docs.example.org/guide/page-${i}"`,
  rest: (i) =>
    `,"crawl":{"loadedUrl":"https://docs.example.org/guide/page-${i}","loadedTime":"2026-12-02T02:11:09.120Z","referrerUrl":"https://docs.example.org/guide/","depth":${i % 4},"httpStatusCode":200},"metadata":{"canonicalUrl":"https://docs.example.org/guide/page-${i}","title":"Page ${i} – Guide","description":null,"author":null,"keywords":null,"languageCode":"en"},"screenshotUrl":null,"text":"Page ${i}"`,
  filler: { field: 'markdown', kind: 'text' },
};

export const contentCrawler: ActorSpec = {
  name: 'apify/website-content-crawler',
  id: 'aYG0l9s7dbB7j3gbS',
  description: 'Crawls websites and extracts their text.',
  inputSchema: {
    title: 'Website Content Crawler',
    type: 'object',
    properties: {
      startUrls: urlList,
      crawlerType: {
        type: 'string',
        description: 'Crawler',
        enum: ['playwright:adaptive', 'playwright:firefox', 'playwright:chrome', 'cheerio', 'jsdom'],
        default: 'playwright:firefox',
      },
      maxCrawlPages: { type: 'integer', description: 'Pages', minimum: 0 },
      maxCrawlDepth: { type: 'integer', description: 'Depth', minimum: 0 },
      maxResults: { type: 'integer', description: 'Results', minimum: 0 },
      includeUrlGlobs: { type: 'array', description: 'Only these', items: { type: 'object' } },
      excludeUrlGlobs: { type: 'array', description: 'Not these', items: { type: 'object' } },
      useSitemaps: { type: 'boolean', description: 'Sitemaps' },
      saveMarkdown: { type: 'boolean', description: 'Markdown' },
      saveHtml: { type: 'boolean', description: 'HTML' },
      removeCookieWarnings: { type: 'boolean', description: 'Cookie banners' },
      blockMedia: { type: 'boolean', description: 'Block images' },
      respectRobotsTxtFile: { type: 'boolean', description: 'robots.txt' },
      proxyConfiguration: proxy,
      sim: simProperty,
    },
    required: ['startUrls'],
  },
  memoryMb: 8192,
  timing: () => ({ median: 420, sigma: 1.1 }),
  items(input) {
    const most = Math.max(
      1,
      Math.min(limitOf(input, 'maxCrawlPages', 3000), limitOf(input, 'maxResults', 3000)),
    );
    return { low: Math.min(20, most), high: Math.min(3000, most), median: Math.min(200, most) };
  },
  bytes: () => ({ low: 4000, high: 16_000 }),
  shape: () => pageShape,
  price: { start: 0, item: 0.0002 },
  records: {
    SDK_CRAWLER_STATISTICS_0: {
      requestsFinished: 80,
      requestsFailed: 0,
      requestAvgFinishedDurationMillis: 412,
    },
  },
};

export const ragBrowser: ActorSpec = {
  name: 'apify/rag-web-browser',
  id: '3ox4R101TgZz67sLr',
  description: 'Searches the web and extracts the text of the first results.',
  inputSchema: {
    title: 'RAG Web Browser',
    type: 'object',
    properties: {
      query: { type: 'string', description: 'Search terms or a URL' },
      maxResults: { type: 'integer', description: 'Results', minimum: 1, maximum: 100, default: 3 },
      outputFormats: {
        type: 'array',
        description: 'Formats',
        items: { type: 'string', enum: ['text', 'markdown', 'html'] },
      },
      scrapingTool: { type: 'string', description: 'Tool', enum: ['browser-playwright', 'raw-http'] },
      requestTimeoutSecs: { type: 'integer', description: 'Timeout', minimum: 1, maximum: 300 },
      proxyConfiguration: proxy,
      sim: simProperty,
    },
    required: ['query'],
  },
  memoryMb: 4096,
  timing: () => ({ median: 22, sigma: 0.5 }),
  items(input) {
    const most = Math.max(1, Math.min(5, limitOf(input, 'maxResults', 3)));
    return { low: 1, high: most, median: Math.min(3, most) };
  },
  bytes: () => ({ low: 6000, high: 14_000 }),
  shape: (input) => ragShape(firstText(input, 'query', 'q')),
  price: { start: 0, item: 0.001 },
  records: {},
};

function ragShape(query: string): ItemShape {
  return {
    fields: [
      'searchResult.url',
      'query',
      'crawl.httpStatusCode',
      'crawl.requestStatus',
      'metadata.title',
      'metadata.url',
      'markdown',
    ],
    core: (i) =>
      `"searchResult":{"title":"Result ${i}","description":"d","url":"https://result-${i}.example.no/"}`,
    rest: (i) =>
      `,"query":${query},"crawl":{"httpStatusCode":200,"httpStatusMessage":"OK","loadedAt":"2026-12-02T02:11:09.120Z","uniqueKey":"u${i}","requestStatus":"handled"},"metadata":{"title":"Result ${i}","url":"https://result-${i}.example.no/","languageCode":"no"}`,
    filler: { field: 'markdown', kind: 'text' },
  };
}

/** Its schema forbids what it does not declare, unlike the others'. */
export const contactInfo: ActorSpec = {
  name: 'vdrmota/contact-info-scraper',
  id: '9Sk4JJhEma9vBKqrg',
  description: 'Extracts e-mail addresses, phone numbers and profiles from websites.',
  inputSchema: {
    title: 'Contact Details Scraper',
    type: 'object',
    properties: {
      startUrls: urlList,
      maxRequestsPerStartUrl: { type: 'integer', description: 'Pages for each', minimum: 1 },
      maxDepth: { type: 'integer', description: 'Depth', minimum: 0 },
      maxRequests: { type: 'integer', description: 'Pages in all', minimum: 1 },
      sameDomain: { type: 'boolean', description: 'Stay on the domain' },
      mergeContacts: { type: 'boolean', description: 'One row a site' },
      considerChildFrames: { type: 'boolean', description: 'Frames' },
      useBrowser: { type: 'boolean', description: 'Browser' },
      proxyConfig: proxy,
      sim: simProperty,
    },
    required: ['startUrls'],
    additionalProperties: false,
  },
  memoryMb: 1024,
  timing: () => ({ median: 60, sigma: 0.6 }),
  items(input) {
    const urls = Array.isArray(input.startUrls) ? Math.max(1, input.startUrls.length) : 1;
    const most =
      input.mergeContacts === true ? urls : urls * limitOf(input, 'maxRequestsPerStartUrl', 8, 1000);
    return { low: Math.max(1, Math.floor(most / 2)), high: Math.max(1, most), median: Math.max(1, most) };
  },
  bytes: () => ({ low: 500, high: 900 }),
  shape: () => ({
    fields: ['domain', 'originalStartUrl', 'emails', 'phones', 'linkedIns', 'facebooks', 'notes'],
    core: (i) => `"domain":"site-${i}.example.com"`,
    rest: (i) =>
      `,"originalStartUrl":"https://site-${i}.example.com/","depth":${i % 3},"emails":["office@site-${i}.example.com"],"phones":["+1555010${100 + (i % 900)}"],"linkedIns":[],"facebooks":["https://facebook.example.com/site${i}"]`,
    filler: { field: 'notes', kind: 'text' },
  }),
  price: { start: 0.001, item: 0.002 },
  records: { SDK_CRAWLER_STATISTICS_0: { requestsFinished: 24, requestsFailed: 1 } },
};
