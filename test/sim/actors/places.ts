import { type ActorSpec, firstText, type ItemShape, limitOf, simProperty } from './actor.js';

const trades = [
  'Copper Finch',
  'Silver Sage',
  'North Fork',
  'Blue Heron',
  'Müller & Sons',
  'Old Mill',
  'Red Kite',
];
const name = (index: number) => `${trades[index % trades.length]} ${index}`;
const digits = (index: number) => String(1000 + (index % 9000));

const hours = JSON.stringify(
  ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'].map((day) => ({
    day,
    hours: '8 AM to 6 PM',
  })),
);

function placeShape(search: string, withReviews: boolean): ItemShape {
  return {
    fields: [
      'title',
      'placeId',
      'phone',
      'price',
      'categoryName',
      'address',
      'city',
      'website',
      'location.lat',
      'location.lng',
      'totalScore',
      'reviewsCount',
      'openingHours',
      'searchString',
      'rank',
      'url',
      withReviews ? 'reviews' : 'description',
    ],
    core: (i) =>
      `"title":"${name(i)}","placeId":"ChIJ-trawl-example-${String(i).padStart(6, '0')}","phone":"(512) 555-${digits(i)}"`,
    rest: (i) =>
      `,"price":null,"categoryName":"Plumber","address":"${100 + (i % 900)} Sample St, Austin, TX 78701","neighborhood":"Downtown","street":"${100 + (i % 900)} Sample St","city":"Austin","postalCode":"78701","state":"Texas","countryCode":"US","website":"https://place-${i}.example.com/","phoneUnformatted":"+1512555${digits(i)}","claimThisBusiness":false,"location":{"lat":30.2672,"lng":-97.7431},"plusCode":"7746+XX Austin, Texas","totalScore":${(3 + (i % 20) / 10).toFixed(1)},"permanentlyClosed":false,"temporarilyClosed":false,"categories":["Plumber","Drainage service"],"reviewsCount":${(i * 37) % 900},"imagesCount":48,"openingHours":${hours},"peopleAlsoSearch":[],"additionalInfo":{"Payments":[{"Credit cards":true}]},"url":"https://www.google.com/maps/search/?api=1&query_place_id=ChIJ-trawl-example-${i}","searchString":${search},"language":"en","rank":${i + 1},"isAdvertisement":false`,
    filler: withReviews ? { field: 'reviews', kind: 'reviews' } : { field: 'description', kind: 'text' },
  };
}

/** Google Maps: a list takes minutes; with reviews its items are huge. */
export const googlePlaces: ActorSpec = {
  name: 'compass/crawler-google-places',
  id: 'nwua9Gu5YrADL7ZDj',
  description: 'Extracts places, contacts and reviews from Google Maps.',
  inputSchema: {
    title: 'Google Maps Scraper',
    type: 'object',
    properties: {
      searchStringsArray: {
        title: 'Search terms',
        description: 'What to search for',
        type: 'array',
        items: { type: 'string' },
      },
      locationQuery: { title: 'Location', description: 'Free text location', type: 'string' },
      maxCrawledPlacesPerSearch: {
        title: 'Places per search',
        description: 'Upper bound for each search term',
        type: 'integer',
        minimum: 1,
      },
      language: { title: 'Language', description: 'Language of the results', type: 'string', default: 'en' },
      skipClosedPlaces: {
        title: 'Skip closed places',
        description: 'Leave closed places out',
        type: 'boolean',
      },
      website: {
        type: 'string',
        description: 'By website',
        enum: ['allPlaces', 'withWebsite', 'withoutWebsite'],
      },
      searchMatching: {
        type: 'string',
        description: 'By name',
        enum: ['all', 'only_includes', 'only_exact'],
      },
      placeMinimumStars: {
        type: 'string',
        description: 'By rating',
        enum: ['', 'two', 'twoAndHalf', 'three', 'threeAndHalf', 'four', 'fourAndHalf'],
      },
      scrapeContacts: { type: 'boolean', description: 'Contacts from the website' },
      scrapePlaceDetailPage: { type: 'boolean', description: 'Open each place' },
      maxReviews: { title: 'Reviews', description: 'Reviews per place', type: 'integer', minimum: 0 },
      reviewsSort: {
        type: 'string',
        description: 'Order of reviews',
        enum: ['newest', 'mostRelevant', 'highestRanking', 'lowestRanking'],
      },
      scrapeReviewsPersonalData: { type: 'boolean', description: 'Names of reviewers' },
      maxImages: { type: 'integer', description: 'Images per place', minimum: 0 },
      countryCode: { type: 'string', description: 'Two letters' },
      city: { type: 'string', description: 'City' },
      state: { type: 'string', description: 'State' },
      postalCode: { type: 'string', description: 'Postal code' },
      placeIds: { type: 'array', description: 'Place ids', items: { type: 'string' } },
      startUrls: { type: 'array', description: 'Google Maps URLs', items: { type: 'object' } },
      sim: simProperty,
    },
  },
  memoryMb: 4096,
  timing: (input) =>
    limitOf(input, 'maxReviews', 0) > 0 ? { median: 900, sigma: 0.9 } : { median: 157, sigma: 0.8 },
  items(input) {
    if (Array.isArray(input.placeIds)) {
      const ids = input.placeIds.length;
      return { low: ids, high: ids, median: ids };
    }
    const most = Math.max(1, limitOf(input, 'maxCrawledPlacesPerSearch', 60));
    const searches = Array.isArray(input.searchStringsArray)
      ? Math.max(1, input.searchStringsArray.length)
      : 1;
    const usual = limitOf(input, 'maxReviews', 0) > 0 ? 40 : 60;
    const median = Math.min(usual, most * searches);
    return {
      low: Math.max(1, Math.floor(median * 0.7)),
      high: Math.min(median + 20, most * searches),
      median,
    };
  },
  bytes: (input) =>
    limitOf(input, 'maxReviews', 0) > 0 ? { low: 140_000, high: 180_000 } : { low: 2048, high: 4096 },
  shape: (input) =>
    placeShape(firstText(input, 'searchStringsArray', 'plumber'), limitOf(input, 'maxReviews', 0) > 0),
  price: { start: 0.007, item: 0.004 },
  records: {},
};

export const googleReviews: ActorSpec = {
  name: 'compass/google-maps-reviews-scraper',
  id: 'Xb8osYTtOjlsgI6k9',
  description: 'Extracts reviews of places on Google Maps.',
  inputSchema: {
    title: 'Google Maps Reviews Scraper',
    type: 'object',
    properties: {
      startUrls: {
        title: 'Places',
        description: 'Google Maps URLs',
        type: 'array',
        items: { type: 'object' },
      },
      placeIds: { type: 'array', description: 'Place ids', items: { type: 'string' } },
      maxReviews: { title: 'Reviews', description: 'Reviews per place', type: 'integer', minimum: 1 },
      reviewsSort: {
        type: 'string',
        description: 'Order',
        enum: ['newest', 'mostRelevant', 'highestRanking', 'lowestRanking'],
      },
      language: { type: 'string', description: 'Language', default: 'en' },
      personalData: { type: 'boolean', description: 'Names of reviewers' },
      sim: simProperty,
    },
  },
  memoryMb: 1024,
  timing: () => ({ median: 120, sigma: 0.7 }),
  items(input) {
    const most = Math.max(1, limitOf(input, 'maxReviews', 100));
    return { low: Math.ceil(most * 0.6), high: most, median: most };
  },
  bytes: () => ({ low: 700, high: 1200 }),
  shape: () => ({
    fields: ['reviewId', 'stars', 'reviewUrl', 'publishAt', 'publishedAtDate', 'likesCount', 'text'],
    core: (i) => `"reviewId":"ChZDSUhNMG9nS0VJQ0FnSUR0cmF3bC1leGFtcGxl${i}","stars":${1 + (i % 5)}`,
    rest: (i) =>
      `,"reviewUrl":"https://www.google.com/maps/reviews/data=!example${i}","textTranslated":null,"publishAt":"2 weeks ago","publishedAtDate":"2026-11-15T17:02:11.120Z","likesCount":${i % 7},"responseFromOwnerText":"Thank you for the kind words!","reviewDetailedRating":{},"reviewContext":{},"reviewImageUrls":[]`,
    filler: { field: 'text', kind: 'text' },
  }),
  price: { start: 0.007, item: 0.0006 },
  records: {},
};

export const yellowPages: ActorSpec = {
  name: 'trudax/yellow-pages-us-scraper',
  id: 'kQy3xVbmN2sR8TzLd',
  description: 'Extracts businesses from the US Yellow Pages.',
  inputSchema: {
    title: 'Yellow Pages US Scraper',
    type: 'object',
    properties: {
      search: { title: 'Search', description: 'What to search for', type: 'string' },
      location: { title: 'Location', description: 'City and state, or a ZIP code', type: 'string' },
      maxItems: { title: 'Items', description: 'Upper bound', type: 'integer', minimum: 1 },
      startUrls: { type: 'array', description: 'Result pages', items: { type: 'object' } },
      proxy: { type: 'object', description: 'Proxy' },
      sim: simProperty,
    },
  },
  memoryMb: 1024,
  timing: () => ({ median: 35, sigma: 0.55 }),
  items(input) {
    const most = Math.max(1, limitOf(input, 'maxItems', 90));
    return { low: Math.min(30, most), high: Math.min(90, most), median: Math.min(60, most) };
  },
  bytes: () => ({ low: 480, high: 560 }),
  shape: (input) => yellowShape(firstText(input, 'location', 'Reno, NV')),
  price: { start: 0.007, item: 0.004 },
  records: {},
};

function yellowShape(location: string): ItemShape {
  return {
    fields: [
      'name',
      'phone',
      'isAd',
      'url',
      'address',
      'searchedLocation',
      'rating',
      'ratingCount',
      'infoSnippet',
    ],
    core: (i) => `"name":"${name(i)}","phone":"(775) 555-${digits(i)}"`,
    rest: (i) =>
      `,"isAd":false,"url":"https://www.yellowpages.com/mip/business-${i}","address":"${100 + (i % 900)} Example Way, Reno, NV 89501","searchedLocation":${location},"rating":${(2 + (i % 30) / 10).toFixed(1)},"ratingCount":${i % 90},"categories":["Electricians","Home Improvements"]`,
    filler: { field: 'infoSnippet', kind: 'text' },
  };
}

/** The Actor of the recorded traffic (`test/wire`): its input fields steer its runs, its items are as recorded. */
export const recordedYellowPages: ActorSpec = {
  name: 'acme/yellowpages-scraper',
  id: 'actYellow00000001',
  description: 'Stub yellowpages-scraper',
  inputSchema: {
    title: 'In',
    type: 'object',
    properties: {
      searchKeyword: {
        title: 'Keyword',
        description: 'Search terms',
        type: 'array',
        items: { type: 'string' },
      },
      location: { title: 'Location', description: '**REQUIRED** Where', type: 'string' },
      maxPages: {
        title: 'Max pages',
        description: 'Pages\nExample values: 1',
        type: 'integer',
        default: 1,
        examples: [1],
      },
      durationSecs: { title: 'd', description: 'stub: run length', type: 'number' },
      items: { title: 'n', description: 'stub: number of items', type: 'integer' },
      outcome: { title: 'o', description: 'stub: final status', type: 'string' },
      lagSecs: { title: 'lag', description: 'stub: total lag', type: 'number' },
      abortSecs: { title: 'ab', description: 'stub: seconds spent in ABORTING', type: 'number' },
      bigItem: { title: 'b', description: 'stub: bytes per item', type: 'integer' },
      statusMessage: { title: 'sm', description: 'stub', type: 'string' },
    },
    required: ['location'],
  },
  memoryMb: 1024,
  timing: () => ({ median: 5, sigma: 0.3 }),
  items: () => ({ low: 30, high: 90, median: 60 }),
  bytes: () => ({ low: 0, high: 0 }),
  shape: () => ({
    fields: ['idx', 'name', 'phone'],
    core: (i) => `"idx":${i},"name":"Plumber ${i}","phone":"512-000-${i}","#debug":{"x":1}`,
    rest: () => '',
    filler: { field: 'blob', kind: 'text' },
  }),
  price: null,
  records: { OUTPUT: { done: true } },
  wishes(input) {
    const named: readonly (readonly [string, string])[] = [
      ['durationSecs', 'runSecs'],
      ['items', 'items'],
      ['outcome', 'status'],
      ['lagSecs', 'lagSecs'],
      ['abortSecs', 'abortSecs'],
      ['bigItem', 'itemBytes'],
      ['statusMessage', 'statusMessage'],
    ];
    return Object.fromEntries(
      named.filter(([from]) => input[from] !== undefined).map(([from, to]) => [to, input[from]]),
    );
  },
};
